// search.ts: "mma", "k=12", "load payload>3 dur>=500": a part of the name, conditions on the payload
// (by its name or "payload") and on the duration in ns. Words must all hold.
import {Trace, valueNumber} from './trace';

export class Query {
  private readonly words: string[] = [];
  private readonly conditions: {key: string; test: (x: number) => boolean}[] = [];
  private readonly declarations: boolean[];

  constructor(private readonly trace: Trace, readonly text: string) {
    for (const word of text.toLowerCase().split(/\s+/).filter(Boolean)) {
      const found = /^([^<>=]+)(<=|>=|=|<|>)(-?[\d.]+(?:e\d+)?|0x[0-9a-f]+)$/.exec(word);
      if (!found) { this.words.push(word); continue; }
      const value = Number(found[3]);
      const tests: Record<string, (x: number) => boolean> = {
        '=': (x) => x === value, '<': (x) => x < value, '>': (x) => x > value,
        '<=': (x) => x <= value, '>=': (x) => x >= value};
      this.conditions.push({key: found[1], test: tests[found[2]]});
    }
    this.declarations = trace.head.declarations.map((declared) =>
      this.words.every((word) => declared.name.toLowerCase().includes(word)) &&
      this.conditions.every(({key}) => key === 'dur' ||
        (declared.type !== 0 && (key === 'payload' || key === declared.payload.toLowerCase()))));
  }
  get empty(): boolean { return this.words.length + this.conditions.length === 0; }
  get needsValues(): boolean { return this.conditions.some(({key}) => key !== 'dur'); }
  declaration(decl: number): boolean { return this.declarations[decl]; }
  matches(slice: number): boolean {
    if (this.trace.isCell(slice)) return this.countIn(slice) > 0;
    const decl = this.trace.decl[slice];
    if (!this.declarations[decl]) return false;
    return this.conditions.every(({key, test}) => key === 'dur'
      ? test(this.trace.endNs(slice) - this.trace.beginNs(slice))
      : test(valueNumber(this.trace.head.declarations[decl].type, this.trace.payload(slice)!)));
  }
  // Of those that a cell of a summary counts; of payloads and durations it knows nothing.
  private countIn(cell: number): number {
    if (this.conditions.length > 0) return 0;
    return this.trace.cells.partsOf(cell - this.trace.firstCell)
      .reduce((sum, {decl, n}) => sum + (this.declarations[decl] ? n : 0), 0);
  }
  // True if there is a summary in which more may be.
  get partial(): boolean { return this.conditions.length > 0 && this.trace.firstCell < this.trace.sliceCount; }
  count(): number {
    let total = 0;
    for (let slice = 0; slice < this.trace.firstCell; ++slice) if (this.matches(slice)) ++total;
    for (let cell = this.trace.firstCell; cell < this.trace.sliceCount; ++cell) total += this.countIn(cell);
    return total;
  }
  // The next match after `slice` in the order of rows, around the end; -1 if there is none.
  next(slice: number, step: 1 | -1): number {
    const n = this.trace.sliceCount;
    for (let i = 1; i <= n; ++i) {
      const at = ((slice + step * i) % n + n) % n;
      if (this.matches(at)) return at;
    }
    return -1;
  }
}
