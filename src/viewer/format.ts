// format.ts: reads the data elements of the page (export/page.h writes them).

export const POINT_KINDS = new Set([0, 7, 8, 9, 11]);

export interface Declaration {
  name: string; kind: number; type: number; payload: string; category: string;
  file: string; line: number; colour: number;
}
export interface LaunchHead {
  label: string; number: number; kernel: string; device: number; first: number; last: number; state: string;
  expected: number; lost: number;
}
export interface RowHead { marks: boolean; group: string; lane: string; token: string; depth: number; }
export interface SummaryHead {
  capture: string; asked: boolean; cut: boolean; firstBlock: number; parts: number;
  window?: [number | null, number | null];  // null: however far
  detailWarps: number; warps: number; detailSlices: number; slices: number; doubtful: number; arrows: number;
}
export interface Head {
  version: number; command: string; host: string; pid: number; originNs: string; damage: string;
  filter: string; summary?: SummaryHead;
  mended: number;
  devices: {name: string; simulated: boolean; sms: number; clocks: number[][]}[];
  declarations: Declaration[];
  launches: LaunchHead[];
  blocks: [number, number, number, number][];  // launch, warps, slices, rows
  rows: RowHead[];
  values: {name: string; type: number; end: boolean}[];
  edges: string[];
  counters: {value: number; meaning: string; fault: boolean}[];
  refused: {kernel: string; why: string}[];
}

interface Base64 { fromBase64?(text: string): Uint8Array; }
declare class DecompressionStream {
  constructor(format: string);
  writable: WritableStream<Uint8Array>; readable: ReadableStream<Uint8Array>;
}

function fromBase64(text: string): Uint8Array {
  const native = Uint8Array as unknown as Base64;
  if (native.fromBase64) return native.fromBase64(text);
  const raw = atob(text);
  const bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; ++i) bytes[i] = raw.charCodeAt(i);
  return bytes;
}

// The bytes of a data element, whose text is then let go.
export async function readElement(id: string): Promise<Uint8Array> {
  const element = document.getElementById(id);
  if (!element) throw new Error(`the file has no part "${id}": it is cut short; export it again`);
  if (typeof DecompressionStream === 'undefined') {
    throw new Error('this browser cannot unpack the data (DecompressionStream is missing): use ' +
                    'Chromium 103, Firefox 113, Safari 16.4 or later');
  }
  // Into memory of the size that it will have: through a Blob and a Response it takes half as long
  // again.
  const bytes = new Uint8Array(Number(element.dataset.size));
  const packed = fromBase64(element.textContent ?? '');
  element.remove();
  const stream = new DecompressionStream('deflate');
  const writer = stream.writable.getWriter();
  writer.write(packed).then(() => writer.close()).catch(() => undefined);  // the reader says it, too
  const reader = stream.readable.getReader();
  let at = 0;
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    bytes.set(part.value, at);
    at += part.value.length;
  }
  if (at !== bytes.length) throw new Error(`part "${id}" has ${at} bytes, not ${bytes.length}; export it again`);
  return bytes;
}

export async function readJson<T>(id: string): Promise<T> {
  return JSON.parse(new TextDecoder().decode(await readElement(id))) as T;
}

// Varints, least significant group first. Numbers above 2^53 are rounded.
export class Varints {
  private at = 0;
  constructor(private readonly bytes: Uint8Array) {}
  get done(): boolean { return this.at >= this.bytes.length; }
  next(): number {
    const bytes = this.bytes;
    let byte = bytes[this.at++];
    if (byte < 128) return byte;
    let value = byte & 127;
    let scale = 128;
    do {
      byte = bytes[this.at++];
      value += (byte & 127) * scale;
      scale *= 128;
    } while (byte >= 128);
    return value;
  }
  fill(into: Uint16Array, from: number, to: number): void {
    const {bytes} = this;
    let {at} = this;
    for (let i = from; i < to; ++i) {
      const byte = bytes[at++];
      if (byte < 128) { into[i] = byte; continue; }
      this.at = at - 1;
      into[i] = this.next();
      at = this.at;
    }
    this.at = at;
  }
  signed(): number {
    const code = this.next();
    return code % 2 === 1 ? -(code + 1) / 2 : code / 2;
  }
  slice(): Uint8Array {
    const size = this.next();
    this.at += size;
    return this.bytes.subarray(this.at - size, this.at);
  }
}

// The columns of a part of a block.
export function columnsOf(part: Uint8Array): Uint8Array[] {
  const all = new Varints(part);
  const columns: Uint8Array[] = [];
  while (!all.done) columns.push(all.slice());
  return columns;
}

// A column of times: low bytes, and apart from them what is above, which seldom is more than a byte.
export class Times {
  private at = 0;
  private atHigh = 0;
  constructor(private readonly low: Uint8Array, private readonly high: Uint8Array) {}
  next(): number {
    const {high} = this;
    let value = high[this.atHigh++];
    if (value >= 128) {
      value &= 127;
      let scale = 128;
      let byte;
      do {
        byte = high[this.atHigh++];
        value += (byte & 127) * scale;
        scale *= 128;
      } while (byte >= 128);
    }
    return value * 256 + this.low[this.at++];
  }
}
