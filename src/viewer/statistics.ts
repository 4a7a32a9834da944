// statistics.ts: how long slices took, by name. Percentiles by nearest rank, as `iket report` has them.
import {Trace} from './trace';

export interface Summary {
  decl: number; name: string; n: number; total: number; min: number; median: number; p99: number; max: number;
}

// Of the slices that `each` visits.
export function summarize(trace: Trace, each: (visit: (slice: number, ns: number) => void) => void): Summary[] {
  const byName = new Map<string, {decl: number; times: number[]}>();
  each((slice, ns) => {
    const name = trace.name(slice);
    const row = byName.get(name);
    if (row) row.times.push(ns); else byName.set(name, {decl: trace.decl[slice], times: [ns]});
  });
  return [...byName].map(([name, {decl, times}]) => {
    const sorted = Float64Array.from(times).sort();
    const rank = (share: number) => sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)];
    return {decl, name, n: sorted.length, total: sorted.reduce((a, b) => a + b, 0), min: sorted[0],
      median: rank(0.5), p99: rank(0.99), max: sorted[sorted.length - 1]};
  }).sort((a, b) => b.total - a.total);
}

// Adds what is in the summary of a launch: of a name of which a part is there, counts and sums are
// those of all, and what needs each by itself is not known (NaN).
export function addCells(trace: Trace, launch: number, rows: Summary[]): Summary[] {
  const byName = new Map(rows.map((row) => [row.name, row]));
  for (let warp = trace.firstLane; warp < trace.warpCount; ++warp) {
    if (trace.launchOf[warp] !== launch) continue;
    const ns = (trace.warpEnd[warp] - trace.warpBegin[warp]) / (trace.life[warp] * 2 ** trace.shift[warp] || 1);
    const last = trace.rowFirst[trace.warpRow[warp + 1]];
    for (let cell = trace.rowFirst[trace.warpRow[warp]]; cell < last; ++cell) {
      for (const {decl, n, cycles} of trace.cells.partsOf(cell - trace.firstCell)) {
        const {name} = trace.head.declarations[decl];
        const row = byName.get(name) ?? {decl, name, n: 0, total: 0, min: NaN, median: NaN, p99: NaN, max: NaN};
        byName.set(name, row);
        row.n += n;
        row.total += cycles * ns;
        row.min = row.median = row.p99 = row.max = NaN;
      }
    }
  }
  return [...byName.values()].sort((a, b) => b.total - a.total);
}

// Those that are there one by one.
export function ofLaunch(trace: Trace, launch: number, visit: (slice: number, ns: number) => void): void {
  for (let row = 0; row < trace.rowKind.length; ++row) {
    const warp = trace.rowWarp[row];
    if (trace.launchOf[warp] !== launch || trace.isLane(warp)) continue;
    const one = trace.clockOf(warp).pieces.length === 1;
    const slope = one ? trace.clockOf(warp).pieces[0].slope * 2 ** trace.shift[warp] : 0;
    for (let slice = trace.rowFirst[row]; slice < trace.rowFirst[row + 1]; ++slice) {
      visit(slice, one ? (trace.end[slice] - trace.begin[slice]) * slope
        : trace.nsOf(warp, trace.end[slice]) - trace.nsOf(warp, trace.begin[slice]));
    }
  }
}

// Counts by half octaves of the duration: [first bin's exponent * 2, counts].
export function histogram(times: number[]): {first: number; counts: number[]} {
  const bin = (ns: number) => Math.floor(2 * Math.log2(Math.max(ns, 0.5)));
  if (times.length === 0) return {first: 0, counts: []};
  let low = Infinity;
  let high = -Infinity;
  for (const ns of times) { low = Math.min(low, bin(ns)); high = Math.max(high, bin(ns)); }
  const counts = new Array<number>(high - low + 1).fill(0);
  for (const ns of times) ++counts[bin(ns) - low];
  return {first: low, counts};
}
export const binStart = (bin: number): number => 2 ** (bin / 2);
