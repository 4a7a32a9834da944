// trace.ts: the timeline in typed arrays, and where things stand in it.
//
// A slice is a range or a mark; slices of a row never overlap and are in order; rows of a warp stand
// together, and warps of a launch. Times of slices are since their warp's begin, in 2^shift cycles.
// Behind all warps stand lanes of the summary, if there is one, and their slices are its cells.
import {Cells, laneLabel} from './cells';
import {columnsOf, Head, LaunchHead, readElement, readJson, RowHead, Times, Varints} from './format';

export interface Piece { cycles: number; ns: number; slope: number; }

export interface Link { from: number; to: number; toEnd: boolean; edge: number; }

export class Trace {
  readonly begin: Uint32Array;
  readonly end: Uint32Array;
  readonly decl: Uint16Array;
  readonly flags = new Map<number, number>();
  // By row: first slice (and one past the last row), its description, its warp.
  readonly rowFirst: Uint32Array;
  readonly rowKind: Uint32Array;
  readonly rowWarp: Uint32Array;
  // By warp.
  launchOf: Uint32Array; ctaX: Uint32Array; ctaY: Uint32Array; ctaZ: Uint32Array;
  index: Int32Array; sm: Uint32Array; slot: Uint32Array; warpFlags: Uint8Array; shift: Uint8Array;
  start: Float64Array; life: Float64Array; warpBegin: Float64Array; warpEnd: Float64Array;
  warpRow: Uint32Array;
  links: Link[] = [];
  readonly firstCell: number;  // from this slice on they are cells
  readonly firstLane: number;  // from this warp on they are lanes of the summary
  readonly cells: Cells;
  readonly members: Float64Array;  // by warp, how many it stands for
  readonly alive: Float64Array;    // and how many of these there are at a time
  readonly took: Record<string, number> = {};  // ms of a step of reading, for benchmarks
  hasValues = false;  // payloads and further values: they are read when all else is on the screen
  private payloadLo = new Uint32Array(0);
  private payloadHi = new Uint32Array(0);
  private readonly further: {first: number; stop: number; bytes: Uint8Array}[] = [];  // by block
  private readonly clocks: {residual: number; pieces: Piece[]}[][];

  private constructor(readonly head: Head) {
    const slices = head.blocks.reduce((sum, block) => sum + block[2], 0);
    const warps = head.blocks.reduce((sum, block) => sum + block[1], 0);
    const rows = head.blocks.reduce((sum, block) => sum + block[3], 0);
    const detail = head.blocks.slice(0, head.summary?.firstBlock);
    this.firstCell = detail.reduce((sum, block) => sum + block[2], 0);
    this.firstLane = detail.reduce((sum, block) => sum + block[1], 0);
    this.cells = new Cells(slices - this.firstCell, head.summary?.parts ?? 0);
    this.members = new Float64Array(warps).fill(1);
    this.alive = new Float64Array(warps).fill(1);
    this.rowFirst = new Uint32Array(rows + 1);
    this.rowKind = new Uint32Array(rows);
    this.rowWarp = new Uint32Array(rows);
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
    const {head} = trace;
    if (head.version !== 2) throw new Error(`data of version ${head.version}, not 2`);
    if (head.declarations.length > 65535) throw new Error('more than 65,535 different events');
    const at = {slice: 0, warp: 0, row: 0};
    let time = performance.now();
    const lap = (what: string) => { const now = performance.now(); trace.took[what] = (trace.took[what] ?? 0) + now - time; time = now; };
    for (let i = 0; i < head.blocks.length; ++i) {
      const shape = columnsOf(await readElement(`block${i}`));
      const low = columnsOf(await readElement(`low${i}`));
      lap('unpack');
      trace.readBlock(head.blocks[i], shape, low, at);
      lap('decode');
    }
    trace.warpRow[at.warp] = at.row;
    trace.rowFirst[at.row] = at.slice;
    const flat = await readJson<number[]>('links');
    for (let i = 0; i < flat.length; i += 4) {
      trace.links.push({from: flat[i], to: flat[i + 1], toEnd: flat[i + 2] === 1, edge: flat[i + 3]});
    }
    return trace;
  }

  private readBlock([launch, warps, slices, rows]: Head['blocks'][0], shape: Uint8Array[], low: Uint8Array[],
                    at: {slice: number; warp: number; row: number}): void {
    const [ctaX, ctaY, ctaZ, index, sm, slot, warpFlags, shift, start, life, rowCount, rowColumn] =
        shape.slice(0, 12).map((column) => new Varints(column));
    const gaps = new Times(low[0], shape[12]);
    const durations = new Times(low[1], shape[13]);
    const declarations = new Varints(shape[14]);
    const [members, cells] = [new Varints(shape[16]), new Varints(shape[17])];
    const next = () => cells.next();
    const {begin, end} = this;
    const [firstSlice, endSlice, endRow] = [at.slice, at.slice + slices, at.row + rows];
    let {slice, row} = at;
    let [lastX, lastStart, lastLife] = [0, 0, 0];
    for (let warp = at.warp; warp < at.warp + warps; ++warp) {
      this.launchOf[warp] = launch;
      this.ctaX[warp] = lastX += ctaX.signed();
      this.ctaY[warp] = ctaY.next();
      this.ctaZ[warp] = ctaZ.next();
      this.index[warp] = index.next() - 1;
      this.sm[warp] = sm.next();
      this.slot[warp] = slot.next();
      this.warpFlags[warp] = warpFlags.next();
      this.shift[warp] = shift.next();
      this.start[warp] = lastStart += start.signed();
      this.life[warp] = lastLife += life.signed();
      this.warpBegin[warp] = this.nsOf(warp, 0);
      this.warpEnd[warp] = this.nsOf(warp, this.life[warp]);
      this.warpRow[warp] = row;
      const unit = 2 ** this.shift[warp];
      if (warp >= this.firstLane) {
        this.members[warp] = members.next();
        this.alive[warp] = members.next() / (this.life[warp] * unit || 1);
      }
      for (let count = rowCount.next(); count > 0; --count, ++row) {
        const kind = rowColumn.next();
        this.rowKind[row] = kind;
        this.rowFirst[row] = slice;
        this.rowWarp[row] = warp;
        const stop = slice + rowColumn.next();
        declarations.fill(this.decl, slice, stop);
        if (warp >= this.firstLane) {
          for (let time = 0; slice < stop; ++slice) {
            begin[slice] = time += gaps.next();
            const lasts = durations.next();
            end[slice] = time += lasts;
            this.cells.add(cells.next(), lasts * unit, next);
          }
        } else if (this.head.rows[kind].marks) {
          for (let time = 0; slice < stop; ++slice) begin[slice] = end[slice] = time += gaps.next();
        } else {
          for (let time = 0; slice < stop; ++slice) {
            begin[slice] = time += gaps.next();
            end[slice] = time += durations.next();
          }
        }
      }
    }
    if (slice !== endSlice || row !== endRow) throw new Error('the data contradicts itself; export it again');
    const flags = new Varints(shape[15]);
    for (let flagged = firstSlice; !flags.done;) {
      flagged += flags.next();
      this.flags.set(flagged, flags.next());
    }
    Object.assign(at, {slice, row, warp: at.warp + warps});
  }

  // Payloads and further values, a block at a time: what is done meanwhile comes in between.
  async readValues(): Promise<void> {
    const types = this.head.declarations.map((declaration) => declaration.type);
    this.payloadLo = new Uint32Array(this.firstCell);
    this.payloadHi = new Uint32Array(types.some((type) => type >= 4) ? this.firstCell : 0);
    let first = 0;
    for (let i = 0; first < this.firstCell; ++i) {
      await new Promise((done) => setTimeout(done));
      const [payloads, further] = columnsOf(await readElement(`values${i}`));
      const slices = this.head.blocks[i][2];
      this.readPayloads(types, new Varints(payloads), first, first + slices);
      this.further.push({first, stop: first + slices, bytes: further});
      first += slices;
    }
    this.hasValues = true;
  }
  private readPayloads(types: number[], values: Varints, first: number, stop: number): void {
    const {payloadLo, payloadHi, decl} = this;
    const last = new Uint32Array(types.length);
    for (let slice = first; slice < stop; ++slice) {
      const type = types[decl[slice]];
      if (type === 0) continue;
      payloadLo[slice] = last[decl[slice]] += values.signed();
      if (type >= 4) payloadHi[slice] = values.next();
    }
  }

  get sliceCount(): number { return this.begin.length; }
  get warpCount(): number { return this.start.length; }
  isCell(slice: number): boolean { return slice >= this.firstCell; }
  // How many there are, one by one or summed up.
  get allSlices(): number { return this.head.summary?.slices ?? this.sliceCount; }
  get allWarps(): number { return this.head.summary?.warps ?? this.warpCount; }
  isLane(warp: number): boolean { return warp >= this.firstLane; }
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

  // The payload's bits; nothing where there is none, and before hasValues.
  payload(slice: number): bigint | undefined {
    const type = this.head.declarations[this.decl[slice]].type;
    if (type === 0 || !this.hasValues || this.isCell(slice)) return undefined;
    const low = BigInt(this.payloadLo[slice]);
    return type >= 4 ? low | BigInt(this.payloadHi[slice]) << 32n : low;
  }
  // Those beside the payload. Looks through its block's: they are asked for of one slice.
  values(slice: number): {name: string; text: string}[] {
    const found: {name: string; text: string}[] = [];
    const block = this.further.find(({first, stop}) => first <= slice && slice < stop);
    const column = new Varints(block?.bytes ?? new Uint8Array(0));
    for (let at = block?.first ?? 0; !column.done && at <= slice;) {
      at += column.next();
      const head = this.head.values[column.next()];
      const bits = BigInt(column.next()) | BigInt(column.next()) << 32n;
      if (at !== slice) continue;
      found.push({name: (head.name || 'payload') + (head.end ? ' (at the end)' : ''), text: valueText(head.type, bits)});
    }
    return found;
  }

  warpLabel(warp: number): string {
    const label = this.index[warp] < 0 ? 'warp ?' : `warp ${this.index[warp]}`;
    return this.isLane(warp) ? laneLabel(this, warp, label) : label;
  }
  ctaLabel(warp: number): string {
    if (this.isLane(warp)) return 'Summary';
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
