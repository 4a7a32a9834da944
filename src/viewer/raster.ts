// raster.ts: lanes as pixels. A pixel shows the name that takes most of its time, the paler the less
// of the pixel is taken, and never so pale that a slice is not seen. One line of a lane is computed
// and then copied to its height; groups (lod.ts) stand for what is narrower than a pixel. A cell of a
// summary has the colour of what takes most of it, the paler the less runs in it, in stripes.
import {GROUP, Level} from './lod';
import {mix, pixel} from './palette';
import {Trace} from './trace';

const SHADES = 8;
const STRIPE = 4;  // every so many pixels of a summary one is left

export interface Shades { background: number; life: number; of: Uint32Array; edge: Uint32Array; }

export function makeShades(colours: number[], shown: (decl: number) => boolean, background: number, life: number): Shades {
  const of = new Uint32Array(colours.length * SHADES);
  const edge = new Uint32Array(colours.length);
  colours.forEach((colour, decl) => {
    for (let i = 0; i < SHADES; ++i) {
      const share = shown(decl) ? 0.4 + 0.6 * i / (SHADES - 1) : 0.08;
      of[decl * SHADES + i] = pixel(mix(life, colour, share));
    }
    edge[decl] = shown(decl) ? pixel(mix(colour, background, 0.55)) : pixel(life);
  });
  return {background: pixel(background), life: pixel(life), of, edge};
}

// How much of a pixel is taken, and by which name the most.
class Pixel {
  cover = 0;
  best = 0;
  private most = 0;
  private names = 0;
  private readonly sums: Float64Array;   // by name; all but those of `taken` are 0
  private readonly taken: Uint16Array;

  constructor(names: number) {
    this.sums = new Float64Array(names);
    this.taken = new Uint16Array(names);
  }
  clear(): void {
    while (this.names > 0) this.sums[this.taken[--this.names]] = 0;
    this.cover = this.most = 0;
  }
  // `share` of it is taken, `own` of that by `name`; both above 0.
  take(name: number, share: number, own: number): void {
    this.cover = Math.min(1, this.cover + share);
    if (this.sums[name] === 0) this.taken[this.names++] = name;
    const sum = this.sums[name] += own;
    if (sum > this.most) { this.most = sum; this.best = name; }
  }
}

export class Raster {
  private readonly pixel: Pixel;
  constructor(private readonly trace: Trace, private readonly levels: Level[]) {
    this.pixel = new Pixel(trace.head.declarations.length);
  }

  // Draws `row` into `line`, a pixel a number, where x = (ns - t0) * perNs. Returns what it drew.
  row(line: Uint32Array, row: number, t0: number, perNs: number, shades: Shades): number {
    const {trace} = this;
    const warp = trace.rowWarp[row];
    this.life(line, warp, t0, perNs, shades);
    const pieces = trace.clockOf(warp).pieces;
    const unit = 2 ** trace.shift[warp];
    let drawn = 0;
    // A piece of the clock after the other: within one, x is a straight line of the slices' units.
    for (let i = 0; i < pieces.length; ++i) {
      const piece = pieces[i];
      const from = i === 0 ? 0 : (piece.cycles - trace.start[warp]) / unit;
      const to = i + 1 < pieces.length ? (pieces[i + 1].cycles - trace.start[warp]) / unit : Infinity;
      if (to <= 0 || from > trace.life[warp]) continue;
      const scale = piece.slope * unit * perNs;
      const base = (piece.ns + (trace.start[warp] - piece.cycles) * piece.slope - t0) * perNs;
      const draw = trace.isLane(warp) ? this.stripes : this.piece;
      drawn += draw.call(this, line, row, base, scale, Math.max(0, from), to, shades);
    }
    return drawn;
  }

  private stripes(line: Uint32Array, row: number, base: number, scale: number, from: number, to: number,
                  shades: Shades): number {
    const {trace} = this;
    const stop = trace.rowFirst[row + 1];
    const marks = trace.rowHead(row).marks;
    const right = Math.min(to, (line.length - base) / scale);
    let drawn = 0;
    for (let i = firstEndingAfter(trace.end, trace.rowFirst[row], stop, Math.max(from, -base / scale));
         i < stop && trace.begin[i] <= right; ++i, ++drawn) {
      const load = marks ? 0.5 : Math.min(1, trace.cells.load[i - trace.firstCell]);
      const colour = shades.of[trace.decl[i] * SHADES + Math.round(load * (SHADES - 1))];
      const x0 = Math.max(0, Math.floor(Math.max(from, trace.begin[i]) * scale + base));
      const x1 = Math.min(line.length - 1, Math.ceil(Math.min(to, trace.end[i]) * scale + base));
      for (let x = x0; x < Math.max(x1, x0 + 1); ++x) if (x % STRIPE !== 0) line[x] = colour;
    }
    return drawn;
  }

  life(line: Uint32Array, warp: number, t0: number, perNs: number, shades: Shades): void {
    const x0 = Math.floor((this.trace.warpBegin[warp] - t0) * perNs);
    const x1 = Math.ceil((this.trace.warpEnd[warp] - t0) * perNs);
    line.fill(shades.background);
    if (x1 < 0 || x0 >= line.length) return;
    line.fill(shades.life, Math.max(0, x0), Math.min(line.length, Math.max(x1, x0 + 1)));
    const window = this.trace.head.summary?.window;
    if (!window || this.trace.isLane(warp)) return;
    const [from, to] = [window[0] ?? -Infinity, window[1] ?? Infinity];
    // Beyond the window its slices are in the summary: stripes, lest it looks as if it did nothing.
    for (let x = Math.max(0, x0); x < Math.min(line.length, x1); ++x) {
      const ns = t0 + x / perNs;
      if (x % STRIPE === 0 && (ns < from || ns > to)) line[x] = shades.background;
    }
  }

  private piece(line: Uint32Array, row: number, base: number, scale: number, from: number, to: number,
                shades: Shades): number {
    const {trace, levels} = this;
    const {begin, end, decl} = trace;
    const width = line.length;
    const {marks} = trace.rowHead(row);
    const stop = trace.rowFirst[row + 1];
    const left = Math.max(from, -base / scale);
    const right = Math.min(to, (width - base) / scale);
    let i = firstEndingAfter(end, trace.rowFirst[row], stop, left);
    let level = 0;   // 0: slices; n: groups of 8^n
    let size = 1;
    let drawn = 0;
    let px = -1;
    const {pixel} = this;
    const start = (at: number) => {
      if (px >= 0 && px < width && pixel.cover > 0) line[px] = shades.of[pixel.best * SHADES + Math.round(pixel.cover * (SHADES - 1))];
      pixel.clear();
      px = at;
    };
    while (i < stop && begin[i] <= right) {
      // The largest group that starts here, ends in this row, and is not wider than a pixel.
      while (level > 0 && (i + size > stop || i % size !== 0 || (end[i + size - 1] - begin[i]) * scale > 1)) {
        --level;
        size /= GROUP;
      }
      while (level < levels.length && i % (size * GROUP) === 0 && i + size * GROUP <= stop &&
             (end[i + size * GROUP - 1] - begin[i]) * scale <= 1) {
        ++level;
        size *= GROUP;
      }
      const group = level > 0 ? levels[level - 1] : undefined;
      const node = i / size;
      const what = group ? group.decl[node] : decl[i];
      const x0 = Math.max(from, begin[i]) * scale + base;
      const x1 = Math.min(to, end[i + size - 1]) * scale + base;
      const first = Math.max(0, Math.floor(x0));
      const last = Math.min(width - 1, Math.floor(x1));
      ++drawn;
      if (last <= first) {
        const weight = marks ? 1 : group ? group.busy[node] * scale : Math.max(x1 - x0, 1e-9);
        if (first !== px) start(first);
        pixel.take(what, weight, group && !marks ? group.weight[node] * scale : weight);
      } else {
        // A group over the edge of two pixels is as pale in both.
        const dense = group && !marks ? Math.min(1, group.busy[node] * scale / (x1 - x0)) : 1;
        const own = group && !marks ? group.weight[node] / group.busy[node] : 1;  // of what it takes
        const share = Math.max(1e-9, Math.min(1, first + 1 - x0) * dense);
        if (first !== px) start(first);
        pixel.take(what, share, share * own);
        start(last);
        const full = shades.of[what * SHADES + SHADES - 1];
        line.fill(full, first + 1, last);
        if (last - first > 3 && x0 >= 0) line[first] = shades.edge[what];
        const rest = (x1 >= width ? 1 : x1 - last) * dense;
        if (rest > 0) pixel.take(what, rest, rest * own);
      }
      i += size;
    }
    start(-1);
    return drawn;
  }

  // Which slice of a row is at `units`, or the nearest within `slack`; -1.
  hit(row: number, units: number, slack: number): number {
    const {begin, end, rowFirst} = this.trace;
    const i = firstEndingAfter(end, rowFirst[row], rowFirst[row + 1], units);
    const away = (slice: number) =>
      slice < rowFirst[row] || slice >= rowFirst[row + 1] ? Infinity :
        Math.max(begin[slice] - units, units - end[slice], 0);
    const near = away(i) <= away(i - 1) ? i : i - 1;
    return away(near) <= slack ? near : -1;
  }
}

// The first of [first, stop) that ends at or after `units`.
export function firstEndingAfter(end: Uint32Array, first: number, stop: number, units: number): number {
  let low = first;
  let high = stop;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (end[middle] < units) low = middle + 1; else high = middle;
  }
  return low;
}
