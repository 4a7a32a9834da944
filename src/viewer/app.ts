// app.ts: what is shown, and how it is drawn. Whatever changes it calls changed(), and one frame
// follows.
import {buildRoles, buildTree, ctaStarts, firstOpen, Lane, laneAt, layOut, Node, Order} from './layout';
import {buildLevels} from './lod';
import {assignColours, isLight} from './palette';
import {makeShades, Raster, Shades} from './raster';
import {Query} from './search';
import {byId, count, short, time} from './text';
import {Link, Trace} from './trace';

const RULER = 22;
const LABELS = 2500;

export class App {
  readonly raster: Raster;
  readonly colours: number[];
  readonly hidden = new Set<string>();  // names
  t0 = 0;
  t1 = 1;
  scroll = 0;
  laneHeight = 16;
  order: Order = 'sm';
  roles = false;
  selected = -1;
  hovered = -1;
  query: Query | null = null;
  box: {x0: number; y0: number; x1: number; y1: number} | null = null;
  span: {t0: number; t1: number} | null = null;  // what is measured
  open = new Set<string>();
  lanes: Lane[] = [];
  trees: Node[] = [];
  drawnIn = 0;  // ms that the last frame took
  drawn = 0;    // slices and groups of the last frame
  onFrame: (() => void)[] = [];
  private starts: Float64Array | null = null;
  private shades!: Shades;
  private waiting = false;
  private linked: {slice: number; incoming: Link[]; outgoing: Link[]} | null = null;
  private image: ImageData | null = null;
  private readonly rasterCanvas = byId<HTMLCanvasElement>('raster');
  private readonly overlay = byId<HTMLCanvasElement>('overlay');
  private readonly holder = byId('lanes');
  private laneOfRow = new Map<number, Lane>();

  constructor(readonly trace: Trace) {
    this.raster = new Raster(trace, buildLevels(trace));
    this.colours = assignColours(trace.head.declarations);
    this.rebuild(true);
    this.fit();
    new ResizeObserver(() => this.changed()).observe(this.holder);
  }

  get dark(): boolean { return document.documentElement.dataset.theme === 'dark'; }
  get gutter(): number { return this.holder.clientWidth < 620 ? 96 : 190; }
  get width(): number { return Math.max(1, this.holder.clientWidth - this.gutter); }
  get height(): number { return Math.max(1, this.holder.clientHeight - RULER); }
  get perNs(): number { return this.width / (this.t1 - this.t0); }
  get contentHeight(): number {
    const last = this.lanes[this.lanes.length - 1];
    return last ? last.y + last.height : 0;
  }
  timeAt(x: number): number { return this.t0 + (x - this.gutter) / this.perNs; }
  xOf(ns: number): number { return this.gutter + (ns - this.t0) * this.perNs; }
  yOf(lane: Lane): number { return lane.y - this.scroll + RULER; }

  rebuild(first = false): void {
    this.starts = this.roles ? ctaStarts(this.trace) : null;
    this.trees = this.roles ? buildRoles(this.trace) : buildTree(this.trace, this.order);
    if (first || this.roles) firstOpen(this.trees).forEach((key) => this.open.add(key));
    this.relayout();
  }
  relayout(): void {
    this.lanes = layOut(this.trace, this.trees, this.open, this.laneHeight, this.starts);
    this.laneOfRow = new Map(this.lanes.filter((lane) => lane.row >= 0).map((lane) => [lane.row, lane]));
    this.changed();
  }
  setRoles(on: boolean): void {
    if (on === this.roles) return;
    this.roles = on;
    this.rebuild();
    this.scroll = 0;
    this.fit();
  }
  toggle(node: Node): void {
    if (!this.open.delete(node.key)) this.open.add(node.key);
    this.relayout();
  }
  // Warps that have a place: a lane of the summary has none among roles.
  get placedWarps(): number { return this.roles ? this.trace.firstLane : this.trace.warpCount; }
  // All of what there is, of the launch of what is selected.
  bounds(): [number, number] {
    let low = Infinity;
    let high = -Infinity;
    const {warpBegin, warpEnd} = this.trace;
    for (let warp = 0; warp < this.placedWarps; ++warp) {
      const offset = this.starts ? this.starts[warp] : 0;
      low = Math.min(low, warpBegin[warp] - offset);
      high = Math.max(high, warpEnd[warp] - offset);
    }
    return low < high ? [low, high] : [0, 1];
  }
  fit(): void {
    const [low, high] = this.bounds();
    this.look(low - (high - low) * 0.01, high + (high - low) * 0.01);
  }
  look(t0: number, t1: number): void {
    const least = 4;  // ns across: a few cycles
    const middle = (t0 + t1) / 2;
    const half = Math.max(t1 - t0, least) / 2;
    const [low, high] = this.bounds();
    const most = (high - low) * 2 + 1000;
    const size = Math.min(half, most);
    const at = Math.min(Math.max(middle, low), high);
    this.t0 = at - size;
    this.t1 = at + size;
    this.changed();
  }
  zoom(factor: number, x = this.gutter + this.width / 2): void {
    const at = this.timeAt(x);
    this.look(at - (at - this.t0) * factor, at + (this.t1 - at) * factor);
  }
  pan(share: number): void {
    const by = (this.t1 - this.t0) * share;
    this.look(this.t0 + by, this.t1 + by);
  }
  scrollBy(pixels: number): void {
    this.scroll += pixels;
    this.changed();
  }
  setLaneHeight(height: number): void {
    this.laneHeight = Math.max(1, Math.min(28, height));
    this.relayout();
  }
  offsetOf(slice: number): number {
    return this.starts ? this.starts[this.trace.rowWarp[this.trace.rowOf(slice)]] : 0;
  }
  // Selects, and brings it into view.
  select(slice: number, show = true): void {
    this.selected = slice;
    if (slice >= 0 && show) this.reveal(slice);
    this.changed();
  }
  reveal(slice: number): void {
    const row = this.trace.rowOf(slice);
    if (!this.laneOfRow.has(row)) {
      const warp = this.trace.rowWarp[row];
      const visit = (node: Node): void => {
        if (!node.warps.includes(warp)) return;
        this.open.add(node.key);
        node.children.forEach(visit);
      };
      this.trees.forEach(visit);
      this.relayout();
    }
    const lane = this.laneOfRow.get(row);
    if (lane && (lane.y < this.scroll || lane.y + lane.height > this.scroll + this.height)) {
      this.scroll = lane.y - this.height / 2;
    }
    const offset = this.offsetOf(slice);
    const begin = this.trace.beginNs(slice) - offset;
    const end = this.trace.endNs(slice) - offset;
    if (begin < this.t0 || end > this.t1) {
      const size = Math.max(this.t1 - this.t0, (end - begin) * 1.5);
      this.look((begin + end) / 2 - size / 2, (begin + end) / 2 + size / 2);
    }
  }
  zoomToSelected(): void {
    if (this.selected < 0) return;
    const offset = this.offsetOf(this.selected);
    const begin = this.trace.beginNs(this.selected) - offset;
    const end = this.trace.endNs(this.selected) - offset;
    const margin = Math.max((end - begin) * 0.6, 20);
    this.look(begin - margin, end + margin);
    this.reveal(this.selected);
  }
  // The slice at a point of #lanes, or -1.
  sliceAt(x: number, y: number): number {
    const lane = this.laneUnder(y);
    if (!lane || lane.row < 0 || x < this.gutter) return -1;
    const warp = lane.warp;
    const ns = this.timeAt(x) + lane.offsetNs;
    // From trace time to units: by bisection, since a clock may have corners.
    let low = 0;
    let high = this.trace.life[warp];
    while (high - low > 1) {
      const middle = Math.floor((low + high) / 2);
      if (this.trace.nsOf(warp, middle) <= ns) low = middle; else high = middle;
    }
    const perUnit = (this.trace.nsOf(warp, this.trace.life[warp]) - this.trace.warpBegin[warp]) / (this.trace.life[warp] || 1);
    return this.raster.hit(lane.row, low, 4 / (this.perNs * (perUnit || 1)));
  }
  laneUnder(y: number): Lane | null {
    const at = y - RULER + this.scroll;
    if (y < RULER || this.lanes.length === 0) return null;
    const lane = this.lanes[laneAt(this.lanes, at)];
    return at >= lane.y && at < lane.y + lane.height ? lane : null;
  }
  headingsInView(): Lane[] {
    const found: Lane[] = [];
    for (let i = this.lanes.length ? laneAt(this.lanes, this.scroll) : 0; i < this.lanes.length; ++i) {
      const lane = this.lanes[i];
      if (lane.y > this.scroll + this.height) break;
      if (lane.row < 0 && lane.warp < 0) found.push(lane);
    }
    return found;
  }
  isShown(decl: number): boolean {
    return !this.hidden.has(this.trace.head.declarations[decl].name) &&
      (!this.query || this.query.empty || this.query.declaration(decl));
  }
  linksOf(slice: number): {incoming: Link[]; outgoing: Link[]} {
    if (slice < 0) return {incoming: [], outgoing: []};
    if (this.linked?.slice === slice) return this.linked;  // each frame asks
    const {trace} = this;
    const row = trace.rowOf(slice);
    const warp = trace.rowWarp[row];
    // What comes within a range, as a mark of its warp, ends its wait.
    const within = (other: number) => other === slice || (!trace.rowHead(row).marks &&
      trace.rowWarp[trace.rowOf(other)] === warp && trace.rowHead(trace.rowOf(other)).marks &&
      trace.begin[other] >= trace.begin[slice] && trace.begin[other] <= trace.end[slice]);
    this.linked = {slice, incoming: trace.links.filter((link) => within(link.to)),
      outgoing: trace.links.filter((link) => within(link.from))};
    return this.linked;
  }

  changed(): void {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => { this.waiting = false; this.frame(); });
  }
  // Draws everything now.
  frame(): void {
    const start = performance.now();
    this.scroll = Math.max(0, Math.min(this.scroll, this.contentHeight - this.height + 40));
    this.shades = makeShades(this.colours, (decl) => this.isShown(decl), this.dark ? 0x12161c : 0xffffff, this.dark ? 0x222a34 : 0xebeef2);
    this.drawRaster();
    this.drawOverlay();
    this.drawnIn = performance.now() - start;
    for (const each of this.onFrame) each();
  }

  private drawRaster(): void {
    const ratio = devicePixelRatio || 1;
    const canvas = this.rasterCanvas;
    const width = Math.max(1, Math.round(this.holder.clientWidth * ratio));
    const height = Math.max(1, Math.round(this.holder.clientHeight * ratio));
    if (canvas.width !== width || canvas.height !== height) { canvas.width = width; canvas.height = height; }
    const context = canvas.getContext('2d')!;
    const left = Math.round(this.gutter * ratio);
    const top = Math.round(RULER * ratio);
    const inner = Math.max(1, width - left);
    const below = Math.max(1, height - top);
    if (!this.image || this.image.width !== inner || this.image.height !== below) this.image = context.createImageData(inner, below);
    const pixels = new Uint32Array(this.image.data.buffer);
    pixels.fill(this.shades.background);
    const perNs = inner / (this.t1 - this.t0);
    this.drawn = 0;
    for (let i = this.lanes.length ? laneAt(this.lanes, this.scroll) : 0; i < this.lanes.length; ++i) {
      const lane = this.lanes[i];
      const y0 = Math.round((lane.y - this.scroll) * ratio);
      if (y0 >= below) break;
      const y1 = Math.min(below, Math.round((lane.y + lane.height - this.scroll) * ratio) - (lane.height >= 8 ? Math.round(ratio) : 0));
      const first = Math.max(0, y0);
      if (y1 <= first) continue;
      if (lane.row < 0 && lane.warp < 0) {
        if (lane.folded) this.drawFolded(pixels, inner, lane, first, y1, perNs);
        continue;
      }
      const line = pixels.subarray(first * inner, (first + 1) * inner);
      if (lane.row >= 0) this.drawn += this.raster.row(line, lane.row, this.t0 + lane.offsetNs, perNs, this.shades);
      else this.raster.life(line, lane.warp, this.t0 + lane.offsetNs, perNs, this.shades);
      for (let y = first + 1; y < y1; ++y) pixels.copyWithin(y * inner, first * inner, (first + 1) * inner);
    }
    context.clearRect(0, 0, width, height);
    context.putImageData(this.image, left, top);
  }

  // Each warp a line of pixels while there is room for all, else how many warps there are at a time.
  private drawFolded(pixels: Uint32Array, width: number, lane: Lane, y0: number, y1: number, perNs: number): void {
    const {trace} = this;
    const {warps} = lane.node;
    const room = y1 - y0;
    const offset = (warp: number) => this.starts ? this.starts[warp] : 0;
    if (warps.length <= room) {
      for (let y = y0; y < y1; ++y) {
        const warp = warps[Math.floor((y - y0) * warps.length / room)];
        const row = trace.warpRow[warp];
        const line = pixels.subarray(y * width, (y + 1) * width);
        if (row < trace.warpRow[warp + 1]) this.raster.row(line, row, this.t0 + offset(warp), perNs, this.shades);
        else this.raster.life(line, warp, this.t0 + offset(warp), perNs, this.shades);
      }
      return;
    }
    const steps = new Float64Array(width + 1);
    for (const warp of warps) {
      const x0 = Math.floor((trace.warpBegin[warp] - offset(warp) - this.t0) * perNs);
      const x1 = Math.ceil((trace.warpEnd[warp] - offset(warp) - this.t0) * perNs);
      if (x1 < 0 || x0 >= width) continue;
      steps[Math.max(0, x0)] += trace.alive[warp];
      steps[Math.min(width, Math.max(x1, x0 + 1))] -= trace.alive[warp];
    }
    let most = 1;
    let alive = 0;
    for (let x = 0; x < width; ++x) { alive += steps[x]; most = Math.max(most, alive); }
    alive = 0;
    const colour = this.dark ? 0xff9a7a5a : 0xffd0b090;
    for (let x = 0; x < width; ++x) {
      alive += steps[x];
      const high = Math.max(0, Math.ceil(alive / most * room - 1e-9));
      for (let y = y1 - high; y < y1; ++y) pixels[y * width + x] = colour;
    }
  }

  private drawOverlay(): void {
    const ratio = devicePixelRatio || 1;
    const canvas = this.overlay;
    const width = this.holder.clientWidth;
    const height = this.holder.clientHeight;
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
    }
    const context = canvas.getContext('2d')!;
    const style = getComputedStyle(document.documentElement);
    const colour = (name: string) => style.getPropertyValue(name).trim();
    const [text, dim, rule, accent, warn] = ['--text', '--dim', '--line', '--accent', '--warn'].map(colour);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    context.font = '11px system-ui, "Segoe UI", "DejaVu Sans", sans-serif';
    context.textBaseline = 'middle';
    this.drawRuler(context, width, dim, rule);
    context.save();
    context.beginPath();
    context.rect(0, RULER, width, height - RULER);
    context.clip();
    let labels = 0;
    let lastLabel = -100;
    for (let i = this.lanes.length ? laneAt(this.lanes, this.scroll) : 0; i < this.lanes.length; ++i) {
      const lane = this.lanes[i];
      const y = this.yOf(lane);
      if (y > height) break;
      const middle = y + lane.height / 2;
      const heading = lane.row < 0 && lane.warp < 0;
      const indent = 8 + lane.level * (this.gutter < 120 ? 6 : 12);
      if (heading) {
        context.fillStyle = rule;
        context.fillRect(0, y + lane.height - 1, lane.folded ? this.gutter : width, 1);
      }
      if (lane.label && (heading || y - lastLabel >= 11)) {
        lastLabel = y;
        context.save();
        context.beginPath();
        context.rect(0, y - 6, heading && !lane.folded ? width : this.gutter - 6, lane.height + 12);
        context.clip();
        context.fillStyle = heading ? text : dim;
        context.fillText((heading ? (lane.folded ? '▸ ' : '▾ ') : '') + short(lane.label) + (heading && lane.node.count ? `  ·  ${count(lane.node.count)}` : ''), indent, middle);
        context.restore();
      }
      if (lane.row >= 0 && lane.height >= 11 && labels < LABELS) labels += this.drawLabels(context, lane, y, LABELS - labels);
    }
    context.fillStyle = rule;
    context.fillRect(this.gutter - 1, 0, 1, height);
    context.beginPath();
    context.rect(this.gutter, RULER, width, height);
    context.clip();
    if (this.hovered >= 0 && this.hovered !== this.selected) this.outline(context, this.hovered, dim, 1);
    if (this.selected >= 0) {
      this.drawLinks(context, accent);
      this.outline(context, this.selected, text, 2);
    }
    context.restore();
    if (this.box) {
      const {x0, y0, x1, y1} = this.box;
      context.strokeStyle = accent;
      context.strokeRect(Math.min(x0, x1) + 0.5, Math.min(y0, y1) + 0.5, Math.abs(x1 - x0), Math.abs(y1 - y0));
      context.globalAlpha = 0.12;
      context.fillStyle = accent;
      context.fillRect(Math.min(x0, x1), Math.min(y0, y1), Math.abs(x1 - x0), Math.abs(y1 - y0));
      context.globalAlpha = 1;
    }
    if (this.span) this.drawSpan(context, height, warn);
  }

  private drawRuler(context: CanvasRenderingContext2D, width: number, dim: string, rule: string): void {
    const wanted = (this.t1 - this.t0) * 110 / this.width;
    const power = 10 ** Math.floor(Math.log10(wanted));
    const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= wanted)!;
    context.fillStyle = dim;
    for (let at = Math.ceil(this.t0 / step) * step; at <= this.t1; at += step) {
      const x = this.xOf(at);
      context.fillStyle = rule;
      context.fillRect(Math.round(x), 0, 1, RULER);
      context.fillStyle = dim;
      context.fillText(time(at), x + 4, RULER / 2);
    }
    context.fillStyle = rule;
    context.fillRect(0, RULER - 1, width, 1);
    context.clearRect(0, 0, this.gutter, RULER - 1);
    context.fillStyle = dim;
    context.fillText(`${time(this.t1 - this.t0)} shown`, 8, RULER / 2);
  }

  private drawLabels(context: CanvasRenderingContext2D, lane: Lane, y: number, most: number): number {
    const {trace} = this;
    const perUnit = (trace.warpEnd[lane.warp] - trace.warpBegin[lane.warp]) / (trace.life[lane.warp] || 1);
    const wide = 26 / (perUnit * this.perNs);
    let made = 0;
    const stop = trace.rowFirst[lane.row + 1];
    let slice = trace.rowFirst[lane.row];
    let high = stop;
    while (slice < high) {
      const middle = (slice + high) >> 1;
      if (trace.nsOf(lane.warp, trace.end[middle]) - lane.offsetNs < this.t0) slice = middle + 1; else high = middle;
    }
    // Of a lane whose slices are all narrow nothing is asked one by one.
    for (let looked = 0; slice < stop && made < most && looked < 1500; ++slice, ++looked) {
      if (trace.end[slice] - trace.begin[slice] < wide) {
        if (looked % 64 === 63 && trace.nsOf(lane.warp, trace.begin[slice]) - lane.offsetNs > this.t1) break;
        continue;
      }
      const x0 = Math.max(this.gutter, this.xOf(trace.nsOf(lane.warp, trace.begin[slice]) - lane.offsetNs));
      const x1 = Math.min(this.gutter + this.width, this.xOf(trace.nsOf(lane.warp, trace.end[slice]) - lane.offsetNs));
      if (x0 > this.gutter + this.width) break;
      if (x1 - x0 < 26 || !this.isShown(trace.decl[slice])) continue;
      const type = trace.head.declarations[trace.decl[slice]].type;
      let label = short(trace.name(slice), 60);
      const room = x1 - x0 - 7;
      // A number is there whole or not at all: a part of it reads as another number.
      const full = type === 0 || !trace.hasValues || trace.isCell(slice) ? label : `${label}  ${this.payloadText(slice)}`;
      if (context.measureText(full).width <= room) label = full;
      while (label.length > 2 && context.measureText(label).width > room) {
        label = label.slice(0, Math.max(1, Math.floor(label.length * 0.75) - 1)) + '…';
      }
      if (context.measureText(label).width > room) continue;
      context.fillStyle = isLight(this.colours[trace.decl[slice]]) ? '#111' : '#fff';
      context.fillText(label, x0 + 4, y + lane.height / 2);
      ++made;
    }
    return made;
  }
  // "summary: 120 slices, most of it mma".
  cellText(slice: number): string {
    const n = this.trace.cells.partsOf(slice - this.trace.firstCell).reduce((sum, part) => sum + part.n, 0);
    return `summary: ${count(n)} begin in it, most of it is ${short(this.trace.name(slice), 60)}`;
  }
  payloadText(slice: number): string {
    const bits = this.trace.payload(slice);
    return bits === undefined ? '' : this.textOf(this.trace.head.declarations[this.trace.decl[slice]].type, bits);
  }
  textOf: (type: number, bits: bigint) => string = () => '';

  private rectangle(slice: number): {x: number; y: number; w: number; h: number} | null {
    const lane = this.laneOfRow.get(this.trace.rowOf(slice));
    if (!lane) return null;
    const x = this.xOf(this.trace.beginNs(slice) - lane.offsetNs);
    const w = Math.max(2, this.xOf(this.trace.endNs(slice) - lane.offsetNs) - x);
    return {x, y: this.yOf(lane), w, h: Math.max(2, lane.height - 1)};
  }
  private outline(context: CanvasRenderingContext2D, slice: number, colour: string, width: number): void {
    const at = this.rectangle(slice);
    if (!at) return;
    context.strokeStyle = colour;
    context.lineWidth = width;
    context.strokeRect(at.x, at.y, at.w, at.h);
    context.lineWidth = 1;
  }
  private drawLinks(context: CanvasRenderingContext2D, colour: string): void {
    const {incoming, outgoing} = this.linksOf(this.selected);
    context.strokeStyle = context.fillStyle = colour;
    for (const link of [...incoming, ...outgoing].slice(0, 200)) {
      const from = this.rectangle(link.from);
      const to = this.rectangle(link.to);
      if (!from || !to) continue;
      const [x0, y0] = [from.x + from.w, from.y + from.h / 2];
      const [x1, y1] = [link.toEnd ? to.x + to.w : to.x, to.y + to.h / 2];
      const bend = Math.max(20, Math.abs(x1 - x0) / 3);
      context.beginPath();
      context.moveTo(x0, y0);
      context.bezierCurveTo(x0 + bend, y0, x1 - bend, y1, x1, y1);
      context.stroke();
      context.beginPath();
      context.moveTo(x1, y1);
      context.lineTo(x1 - 7, y1 - 4);
      context.lineTo(x1 - 7, y1 + 4);
      context.fill();
    }
  }
  private drawSpan(context: CanvasRenderingContext2D, height: number, colour: string): void {
    const {t0, t1} = this.span!;
    const [x0, x1] = [this.xOf(Math.min(t0, t1)), this.xOf(Math.max(t0, t1))];
    context.globalAlpha = 0.14;
    context.fillStyle = colour;
    context.fillRect(x0, RULER, x1 - x0, height);
    context.globalAlpha = 1;
    context.fillRect(x0, 0, 1, height);
    context.fillRect(x1, 0, 1, height);
    context.font = 'bold 12px system-ui, sans-serif';
    context.fillText(time(Math.abs(t1 - t0)), Math.max(this.gutter + 4, x0 + 4), RULER + 12);
  }
}
