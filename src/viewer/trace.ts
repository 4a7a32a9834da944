// trace.ts: the timeline in typed arrays, and where things stand in it.
//
// A slice is a range or a mark; slices of a row never overlap and are in order; rows of a warp stand
// together, and warps of a launch. Times of slices are since their warp's begin, in 2^shift cycles.
import {Head, LaunchHead, readElement, readJson, RowHead, Varints} from './format';

export interface Piece { cycles: number; ns: number; slope: number; }

export interface Link { from: number; to: number; toEnd: boolean; edge: number; }

export class Trace {
  readonly begin: Uint32Array;
  readonly end: Uint32Array;
  readonly decl: Uint16Array;
  readonly flags = new Map<number, number>();
  // By row: first slice (and one past the last row), its description, its warp.
  rowFirst: Uint32Array = new Uint32Array(0);
  rowKind: Uint32Array = new Uint32Array(0);
  rowWarp: Uint32Array = new Uint32Array(0);
  // By warp.
  launchOf: Uint32Array; ctaX: Uint32Array; ctaY: Uint32Array; ctaZ: Uint32Array;
  index: Int32Array; sm: Uint32Array; slot: Uint32Array; warpFlags: Uint8Array; shift: Uint8Array;
  start: Float64Array; life: Float64Array; warpBegin: Float64Array; warpEnd: Float64Array;
  warpRow: Uint32Array;
  links: Link[] = [];
  private payloadLo?: Uint32Array;
  private payloadHi?: Uint32Array;
  private readonly payloadColumns: {first: number; count: number; bytes: Uint8Array}[] = [];
  private readonly extras = new Map<number, {value: number; bits: bigint}[]>();
  private readonly clocks: {residual: number; pieces: Piece[]}[][];

  private constructor(readonly head: Head) {
    const slices = head.blocks.reduce((sum, block) => sum + block[2], 0);
    const warps = head.blocks.reduce((sum, block) => sum + block[1], 0);
    this.begin = new Uint32Array(slices);
    this.end = new Uint32Array(slices);
    this.decl = new Uint16Array(slices);
    const u32 = () => new Uint32Array(warps);
    [this.launchOf, this.ctaX, this.ctaY, this.ctaZ, this.sm, this.slot] =
        [u32(), u32(), u32(), u32(), u32(), u32()];
    this.index = new Int32Array(warps);
    this.warpFlags = new Uint8Array(warps);
    this.shift = new Uint8Array(warps);
    const f64 = () => new Float64Array(warps);
    [this.start, this.life, this.warpBegin, this.warpEnd] = [f64(), f64(), f64(), f64()];
    this.warpRow = new Uint32Array(warps + 1);
    this.clocks = head.devices.map((device) => device.clocks.map((row) => {
      const pieces: Piece[] = [];
      for (let i = 1; i + 2 < row.length; i += 3) {
        pieces.push({cycles: row[i], ns: row[i + 1], slope: row[i + 2]});
      }
      return {residual: row[0], pieces};
    }));
  }

  static async read(): Promise<Trace> {
    const trace = new Trace(await readJson<Head>('head'));
    if (trace.head.version !== 1) throw new Error(`data of version ${trace.head.version}, not 1`);
    if (trace.head.declarations.length > 65535) throw new Error('more than 65,535 different events');
    const rows = {first: [] as number[], kind: [] as number[], warp: [] as number[]};
    let slice = 0;
    let warp = 0;
    for (let i = 0; i < trace.head.blocks.length; ++i) {
      const [launch, warps, slices] = trace.head.blocks[i];
      trace.readBlock(await readElement(`block${i}`), launch, warps, slice, slices, warp, rows);
      slice += slices;
      warp += warps;
    }
    trace.warpRow[warp] = rows.first.length;
    rows.first.push(slice);
    trace.rowFirst = Uint32Array.from(rows.first);
    trace.rowKind = Uint32Array.from(rows.kind);
    trace.rowWarp = Uint32Array.from(rows.warp);
    const flat = await readJson<number[]>('links');
    for (let i = 0; i < flat.length; i += 4) {
      trace.links.push({from: flat[i], to: flat[i + 1], toEnd: flat[i + 2] === 1, edge: flat[i + 3]});
    }
    return trace;
  }

  private readBlock(bytes: Uint8Array, launch: number, warps: number, firstSlice: number,
                    slices: number, firstWarp: number,
                    rows: {first: number[]; kind: number[]; warp: number[]}): void {
    const all = new Varints(bytes);
    const columns: Uint8Array[] = [];
    while (!all.done) columns.push(all.slice());
    const [warpColumn, rowColumn, gaps, durations, declarations] = columns.map((c) => new Varints(c));
    const {begin, end, decl} = this;
    let slice = firstSlice;
    let last = 0;
    for (let warp = firstWarp; warp < firstWarp + warps; ++warp) {
      this.launchOf[warp] = launch;
      this.ctaX[warp] = warpColumn.next();
      this.ctaY[warp] = warpColumn.next();
      this.ctaZ[warp] = warpColumn.next();
      this.index[warp] = warpColumn.next() - 1;
      this.sm[warp] = warpColumn.next();
      this.slot[warp] = warpColumn.next();
      this.warpFlags[warp] = warpColumn.next();
      this.shift[warp] = warpColumn.next();
      const step = warpColumn.next();
      last += step % 2 === 1 ? -Math.floor(step / 2) : step / 2;
      this.start[warp] = last;
      this.life[warp] = warpColumn.next();
      this.warpBegin[warp] = this.nsOf(warp, 0);
      this.warpEnd[warp] = this.nsOf(warp, this.life[warp]);
      this.warpRow[warp] = rows.first.length;
      for (let count = warpColumn.next(); count > 0; --count) {
        rows.kind.push(rowColumn.next());
        rows.first.push(slice);
        rows.warp.push(warp);
        const stop = slice + rowColumn.next();
        for (let at = 0; slice < stop; ++slice) {
          at += gaps.next();
          begin[slice] = at;
          at += durations.next();
          end[slice] = at;
          decl[slice] = declarations.next();
        }
      }
    }
    if (slice !== firstSlice + slices) throw new Error('the data contradicts itself; export it again');
    this.payloadColumns.push({first: firstSlice, count: slices, bytes: columns[5].slice()});
    const flags = new Varints(columns[6]);
    for (let at = firstSlice; !flags.done;) {
      at += flags.next();
      this.flags.set(at, flags.next());
    }
    const values = new Varints(columns[7]);
    for (let at = firstSlice; !values.done;) {
      at += values.next();
      const value = values.next();
      const bits = BigInt(values.next()) | BigInt(values.next()) << 32n;
      const there = this.extras.get(at);
      if (there) there.push({value, bits}); else this.extras.set(at, [{value, bits}]);
    }
  }

  get sliceCount(): number { return this.begin.length; }
  get warpCount(): number { return this.start.length; }
  launch(warp: number): LaunchHead { return this.head.launches[this.launchOf[warp]]; }
  name(slice: number): string { return this.head.declarations[this.decl[slice]].name; }
  rowHead(row: number): RowHead { return this.head.rows[this.rowKind[row]]; }

  // The row that holds a slice.
  rowOf(slice: number): number {
    let low = 0;
    let high = this.rowFirst.length - 1;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (this.rowFirst[middle] <= slice) low = middle; else high = middle;
    }
    return low;
  }

  clockOf(warp: number): {residual: number; pieces: Piece[]} {
    return this.clocks[this.launch(warp).device]?.[this.sm[warp]] ?? {residual: 0, pieces: []};
  }
  // Trace time of `units` after the warp's begin.
  nsOf(warp: number, units: number): number {
    const cycles = this.start[warp] + units * 2 ** this.shift[warp];
    const pieces = this.clockOf(warp).pieces;
    if (pieces.length === 0) return 0;
    let i = pieces.length - 1;
    while (i > 0 && pieces[i].cycles > cycles) --i;
    return pieces[i].ns + (cycles - pieces[i].cycles) * pieces[i].slope;
  }
  beginNs(slice: number): number { return this.nsOf(this.rowWarp[this.rowOf(slice)], this.begin[slice]); }
  endNs(slice: number): number { return this.nsOf(this.rowWarp[this.rowOf(slice)], this.end[slice]); }
  cyclesOf(slice: number): number {
    return (this.end[slice] - this.begin[slice]) * 2 ** this.shift[this.rowWarp[this.rowOf(slice)]];
  }

  // The payload's bits, or nothing. All are decoded when the first is asked for.
  payload(slice: number): bigint | undefined {
    const type = this.head.declarations[this.decl[slice]].type;
    if (type === 0) return undefined;
    if (!this.payloadLo) this.readPayloads();
    const low = BigInt(this.payloadLo![slice]);
    return type >= 4 ? low | BigInt(this.payloadHi![slice]) << 32n : low;
  }
  private readPayloads(): void {
    const lo = this.payloadLo = new Uint32Array(this.sliceCount);
    const types = this.head.declarations.map((declaration) => declaration.type);
    const hi = this.payloadHi = new Uint32Array(types.some((type) => type >= 4) ? this.sliceCount : 0);
    const last = new Uint32Array(types.length);
    for (const column of this.payloadColumns) {
      const values = new Varints(column.bytes);
      last.fill(0);
      for (let slice = column.first; slice < column.first + column.count; ++slice) {
        const decl = this.decl[slice];
        if (types[decl] === 0) continue;
        const code = values.next();
        last[decl] += code % 2 === 0 ? code / 2 : -(code + 1) / 2;
        lo[slice] = last[decl];
        if (types[decl] >= 4) hi[slice] = values.next();
      }
    }
    this.payloadColumns.length = 0;
  }
  values(slice: number): {name: string; text: string}[] {
    return (this.extras.get(slice) ?? []).map(({value, bits}) => {
      const head = this.head.values[value];
      return {name: (head.name || 'payload') + (head.end ? ' (at the end)' : ''), text: valueText(head.type, bits)};
    });
  }

  warpLabel(warp: number): string {
    return this.index[warp] < 0 ? 'warp ?' : `warp ${this.index[warp]}`;
  }
  ctaLabel(warp: number): string {
    if (this.warpFlags[warp] & 64) return 'CTA ?';
    return `CTA (${this.ctaX[warp]}, ${this.ctaY[warp]}, ${this.ctaZ[warp]})`;
  }
  sameCta(a: number, b: number): boolean {
    return this.launchOf[a] === this.launchOf[b] && this.ctaX[a] === this.ctaX[b] &&
        this.ctaY[a] === this.ctaY[b] && this.ctaZ[a] === this.ctaZ[b] && this.sm[a] === this.sm[b];
  }
}

// The number that bits of a payload type are: 1 u32, 2 s32, 3 f32, 4 u64, 5 s64, 6 f64.
export function valueNumber(type: number, bits: bigint): number {
  const view = new DataView(new ArrayBuffer(8));
  view.setBigUint64(0, bits);
  if (type === 2) return view.getInt32(4);
  if (type === 3) return view.getFloat32(4);
  if (type === 5) return Number(view.getBigInt64(0));
  if (type === 6) return view.getFloat64(0);
  return Number(bits);
}
export function valueText(type: number, bits: bigint): string {
  if (type === 4) return bits.toString() + (bits > 0xffffffffn ? ` (0x${bits.toString(16)})` : '');
  if (type === 5) return BigInt.asIntN(64, bits).toString();
  if (type === 3) return String(Number(valueNumber(3, bits).toPrecision(7)));
  return String(valueNumber(type, bits));
}
