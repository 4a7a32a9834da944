// lod.ts: groups of 8, 64, 512, ... slices, so that a frame costs what it shows and not what there is.
//
// A group has the declaration that takes most of its time, and how much time its slices take
// together. Groups lie over all slices; whoever draws uses those that lie within one row.
import {Trace} from './trace';

export interface Level { decl: Uint16Array; busy: Float32Array; weight: Float32Array; }
export const GROUP = 8;

export function buildLevels(trace: Trace): Level[] {
  const levels: Level[] = [];
  const sums = new Float64Array(trace.head.declarations.length);
  for (let count = Math.floor(trace.sliceCount / GROUP); count > 0; count = Math.floor(count / GROUP)) {
    const below = levels[levels.length - 1];
    const level: Level = {decl: new Uint16Array(count), busy: new Float32Array(count), weight: new Float32Array(count)};
    for (let i = 0; i < count; ++i) {
      const first = i * GROUP;
      let best = 0;
      let most = -1;
      let busy = 0;
      for (let j = first; j < first + GROUP; ++j) {
        const decl = below ? below.decl[j] : trace.decl[j];
        const time = below ? below.weight[j] : trace.end[j] - trace.begin[j] + 1;  // a mark counts, too
        busy += below ? below.busy[j] : time;
        const sum = sums[decl] += time;
        if (sum > most) { most = sum; best = decl; }
      }
      for (let j = first; j < first + GROUP; ++j) sums[below ? below.decl[j] : trace.decl[j]] = 0;
      level.decl[i] = best;
      level.busy[i] = busy;
      level.weight[i] = most;
    }
    levels.push(level);
  }
  return levels;
}
