// cells.ts: the summary that stands for what a page does not show one by one (docs/timeline.md): how
// it is told from ranges, and the note that says so and how one gets the rest.
import {App} from './app';
import {byId, count, plural} from './text';
import {Trace} from './trace';

// What of a name is in a cell: slices that begin in it, and the time within it of all.
export interface Part { decl: number; n: number; cycles: number; }

export class Cells {
  // By cell: its first part (and one past the last cell), and how many slices run at a time, mean.
  readonly first: Uint32Array;
  readonly load: Float32Array;
  private readonly decl: Uint16Array;
  private readonly n: Float64Array;
  private readonly cycles: Float64Array;
  private cell = 0;
  private part = 0;

  constructor(cells: number, parts: number) {
    this.first = new Uint32Array(cells + 1);
    this.load = new Float32Array(cells);
    this.decl = new Uint16Array(parts);
    this.n = new Float64Array(parts);
    this.cycles = new Float64Array(parts);
  }
  // The next cell, which lasts for so many cycles.
  add(parts: number, lasts: number, next: () => number): void {
    let all = 0;
    for (; parts > 0; --parts, ++this.part) {
      this.decl[this.part] = next();
      this.n[this.part] = next();
      all += this.cycles[this.part] = next();
    }
    this.load[this.cell++] = all / lasts;
    this.first[this.cell] = this.part;
  }
  partsOf(cell: number): Part[] {
    const parts: Part[] = [];
    for (let i = this.first[cell]; i < this.first[cell + 1]; ++i) {
      parts.push({decl: this.decl[i], n: this.n[i], cycles: this.cycles[i]});
    }
    return parts;
  }
  // Counts of all cells, by declaration.
  addCounts(into: Float64Array): void {
    for (let i = 0; i < this.part; ++i) into[this.decl[i]] += this.n[i];
  }
}

// The command that has one by one what is shown, or what else it is given.
export function commandFor(app: App, only = '', times: [number, number] = [app.t0, app.t1]): string {
  const {summary, launches} = app.trace.head;
  const shown = new Set<number>();
  for (const lane of app.lanes) {
    const y = app.yOf(lane);
    if (lane.node.warps.length > 0 && y + lane.height > 0 && y < app.height) shown.add(app.trace.launchOf[lane.node.warps[0]]);
  }
  const numbers = [...shown].map((launch) => launches[launch].number);
  const launch = numbers.length > 0 && numbers.every((number) => number >= 0) ? ` --launch ${numbers.join(',')}` : '';
  const window = app.roles ? '' : ` --window ${Math.max(0, Math.floor(times[0]))}..${Math.max(1, Math.ceil(times[1]))}`;
  return `iket export ${summary!.capture} --format html --summarize-rest${launch}${only}${window}`;
}

// The line below the buttons that says that there is a summary.
export function showNote(app: App): void {
  const {summary} = app.trace.head;
  if (!summary) return;
  const left = [summary.arrows ? `${plural(summary.arrows, 'arrow')} to or from it` : '',
    summary.doubtful ? `which ${plural(summary.doubtful, 'range')} of it overlap or were never closed` : ''].filter(Boolean);
  const said =
    `${count(summary.detailSlices)} of ${plural(summary.slices, 'range')} and marks are shown one by one, those of ` +
    `${count(summary.detailWarps)} of ${plural(summary.warps, 'warp')}${!summary.cut ? ', as was asked for' : summary.asked ? ', the first of what was asked for' : ', which come first'}. ` +
    `Striped is a summary of the rest: counts and times are exact, payloads are not in it${left.length ? ', nor ' + left.join(', nor ') : ''}. ` +
    'To have one by one what is shown now:';
  byId('summary').hidden = false;
  app.onFrame.push(() => {
    byId('summarized').textContent = (app.roles ? 'Roles are of what is shown one by one. ' : '') + said;
    byId('more').textContent = commandFor(app);
  });
}

// "warp 3 of 120 CTAs": a lane of the summary.
export function laneLabel(trace: Trace, warp: number, label: string): string {
  const members = trace.members[warp];
  return members === 0 ? `${label}, the rest of it` : members === 1 ? label : `${label} of ${count(members)} CTAs`;
}
