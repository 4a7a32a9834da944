// input.ts: keys, wheel, mouse and touch.
import {App} from './app';
import {Lane, laneAt, Order} from './layout';
import {Panels} from './panels';
import {Query} from './search';
import {summarize} from './statistics';
import {byId, facts, make, plural, short, time} from './text';

const KEYS: [string, string][] = [
  ['w  s', 'zoom in, out'], ['a  d', 'move left, right'], ['arrows', 'move and scroll'],
  ['wheel', 'scroll; with Ctrl zoom, with Shift move'], ['drag', 'move'], ['Shift drag', 'statistics of a box'],
  ['.  ,', 'next, previous slice of the lane'], ['j  k', 'lane below, above'], ['[  ]', 'previous, next of the same name'],
  ['f  Enter', 'zoom to the selection'], ['0', 'all of it'], ['Space', 'fold or unfold'], ['Tab', 'to the headings: arrows move, Enter folds'], ['+  -', 'taller, flatter lanes'],
  ['m', 'measure by dragging'], ['r', 'roles: the same warp of every CTA'], ['/', 'search; Enter next, Shift Enter previous'],
  ['t', 'light or dark'], ['Esc', 'put away']];

export class Input {
  private readonly holder = byId('lanes');
  private readonly pointers = new Map<number, {x: number; y: number}>();
  private moved = false;
  private mode: 'pan' | 'box' | 'measure' = 'pan';
  private measuring = false;

  constructor(private readonly app: App, private readonly panels: Panels) {
    this.holder.addEventListener('wheel', (event) => this.wheel(event), {passive: false});
    this.holder.addEventListener('pointerdown', (event) => this.down(event));
    this.holder.addEventListener('pointermove', (event) => this.move(event));
    this.holder.addEventListener('pointerup', (event) => this.up(event));
    this.holder.addEventListener('pointercancel', (event) => { this.pointers.delete(event.pointerId); });
    this.holder.addEventListener('dblclick', () => this.app.zoomToSelected());
    document.addEventListener('keydown', (event) => this.key(event));
    byId('fit').addEventListener('click', () => app.fit());
    byId('roles').addEventListener('click', () => this.toggleRoles());
    byId('measure').addEventListener('click', () => this.toggleMeasure());
    byId('theme').addEventListener('click', () => this.toggleTheme());
    byId('help').addEventListener('click', () => this.help());
    byId<HTMLSelectElement>('order').addEventListener('change', (event) => {
      app.order = (event.target as HTMLSelectElement).value as Order;
      app.rebuild();
    });
    this.search();
  }

  private point(event: MouseEvent): {x: number; y: number} {
    const bounds = this.holder.getBoundingClientRect();
    return {x: event.clientX - bounds.left, y: event.clientY - bounds.top};
  }
  private wheel(event: WheelEvent): void {
    event.preventDefault();
    const scale = event.deltaMode === 1 ? 16 : 1;
    const by = event.deltaY * scale;
    if (event.ctrlKey || event.metaKey) this.app.zoom(Math.exp(by * 0.002), this.point(event).x);
    else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) this.app.pan((event.deltaX * scale || by) / this.app.width);
    else this.app.scrollBy(by);
  }
  private down(event: PointerEvent): void {
    const at = this.point(event);
    this.pointers.set(event.pointerId, at);
    this.holder.setPointerCapture(event.pointerId);
    this.holder.focus();
    this.moved = false;
    this.mode = this.measuring ? 'measure' : event.shiftKey ? 'box' : 'pan';
    if (this.mode === 'box') this.app.box = {x0: at.x, y0: at.y, x1: at.x, y1: at.y};
    if (this.mode === 'measure') this.app.span = {t0: this.snap(at), t1: this.snap(at)};
  }
  // The nearest edge of the slice under the pointer, within some pixels.
  private snap(at: {x: number; y: number}): number {
    const ns = this.app.timeAt(at.x);
    const slice = this.app.sliceAt(at.x, at.y);
    if (slice < 0) return ns;
    const offset = this.app.offsetOf(slice);
    const edges = [this.app.trace.beginNs(slice) - offset, this.app.trace.endNs(slice) - offset];
    return edges.find((edge) => Math.abs(edge - ns) * this.app.perNs < 6) ?? ns;
  }
  private move(event: PointerEvent): void {
    const at = this.point(event);
    const last = this.pointers.get(event.pointerId);
    if (!last) {
      const hovered = this.app.sliceAt(at.x, at.y);
      if (hovered !== this.app.hovered) { this.app.hovered = hovered; this.app.changed(); }
      this.status(at);
      return;
    }
    const {app} = this;
    if (this.pointers.size === 2) {
      const other = [...this.pointers].find(([id]) => id !== event.pointerId)![1];
      const before = Math.max(20, Math.hypot(last.x - other.x, last.y - other.y));
      const after = Math.max(20, Math.hypot(at.x - other.x, at.y - other.y));
      app.zoom(before / after, (at.x + other.x) / 2);
      this.moved = true;
    } else if (this.mode === 'box') {
      app.box!.x1 = at.x;
      app.box!.y1 = at.y;
      this.moved = true;
      this.ofBox();
    } else if (this.mode === 'measure') {
      app.span!.t1 = this.snap(at);
      this.moved = true;
      byId('announce').textContent = `measured ${time(Math.abs(app.span!.t1 - app.span!.t0))}`;
    } else {
      if (!this.moved && Math.hypot(at.x - last.x, at.y - last.y) < 4) return;
      this.moved = true;
      app.pan((last.x - at.x) / app.width);
      app.scrollBy(last.y - at.y);
    }
    this.pointers.set(event.pointerId, at);
    app.changed();
  }
  private up(event: PointerEvent): void {
    const at = this.point(event);
    if (!this.pointers.delete(event.pointerId)) return;
    const {app} = this;
    if (this.mode === 'box') {
      app.box = null;
      app.changed();
      return;
    }
    if (this.moved || this.mode === 'measure') return;
    const lane = app.laneUnder(at.y);
    if (lane && lane.row < 0 && lane.warp < 0) { app.toggle(lane.node); return; }
    app.select(app.sliceAt(at.x, at.y), false);
    if (app.selected >= 0) this.panels.show('details');
  }
  private ofBox(): void {
    const {app} = this;
    const {trace} = app;
    const box = app.box!;
    const [t0, t1] = [app.timeAt(Math.min(box.x0, box.x1)), app.timeAt(Math.max(box.x0, box.x1))];
    const top = Math.min(box.y0, box.y1);
    const bottom = Math.max(box.y0, box.y1);
    const rows: {row: number; offset: number}[] = [];
    for (const lane of app.lanes) {
      const y = app.yOf(lane);
      if (y + lane.height < top || y > bottom) continue;
      if (lane.row >= 0) rows.push({row: lane.row, offset: lane.offsetNs});
      else if (lane.folded) for (const warp of lane.node.warps) for (let row = trace.warpRow[warp]; row < trace.warpRow[warp + 1]; ++row) rows.push({row, offset: 0});
    }
    let slices = 0;
    let cells = 0;
    const summary = summarize(trace, (visit) => {
      for (const {row, offset} of rows) {
        const warp = trace.rowWarp[row];
        for (let slice = trace.rowFirst[row]; slice < trace.rowFirst[row + 1]; ++slice) {
          const begin = trace.nsOf(warp, trace.begin[slice]);
          const end = trace.nsOf(warp, trace.end[slice]);
          if (end - offset < t0 || begin - offset > t1) continue;
          if (trace.isCell(slice)) { ++cells; continue; }
          ++slices;
          visit(slice, end - begin);
        }
      }
    });
    this.panels.ofBox(summary, slices, t1 - t0, rows.length, cells);
  }
  private status(at: {x: number; y: number}): void {
    const {app} = this;
    const lane = app.laneUnder(at.y);
    const where = lane && lane.warp >= 0 ? `SM ${app.trace.sm[lane.warp]}  ${app.trace.ctaLabel(lane.warp)}  ${app.trace.warpLabel(lane.warp)}` : short(lane?.label ?? '', 80);
    const what = app.hovered >= app.trace.firstCell ? `  ${app.cellText(app.hovered)}` : app.hovered >= 0 ? `  ${short(app.trace.name(app.hovered), 60)}  ${time(app.trace.endNs(app.hovered) - app.trace.beginNs(app.hovered))}  ${app.payloadText(app.hovered)}` : '';
    byId('status').textContent = at.x > app.gutter ? `${time(app.timeAt(at.x))}   ${where}${what}` : where;
  }

  private toggleRoles(): void {
    this.app.setRoles(!this.app.roles);
    byId('roles').setAttribute('aria-pressed', String(this.app.roles));
  }
  private toggleMeasure(): void {
    this.measuring = !this.measuring;
    if (!this.measuring) this.app.span = null;
    byId('measure').setAttribute('aria-pressed', String(this.measuring));
    this.app.changed();
  }
  private toggleTheme(): void {
    document.documentElement.dataset.theme = this.app.dark ? 'light' : 'dark';
    this.app.changed();
  }
  private help(): void {
    const dialog = byId<HTMLDialogElement>('keys');
    dialog.replaceChildren(make('h2', 'Keys'), facts(KEYS));
    dialog.showModal();
  }
  // The lane of the selection, or the first with something in it.
  private laneOfSelected(): number {
    const {app} = this;
    if (app.selected >= 0) {
      const row = app.trace.rowOf(app.selected);
      return app.lanes.findIndex((lane) => lane.row === row);
    }
    return app.lanes.findIndex((lane, i) => lane.row >= 0 && i >= laneAt(app.lanes, app.scroll));
  }
  private walk(step: 1 | -1): void {
    const {app} = this;
    const {trace} = app;
    const lane = app.lanes[this.laneOfSelected()];
    if (!lane) return;
    const slice = app.selected < 0 ? trace.rowFirst[lane.row] : app.selected + step;
    if (slice >= trace.rowFirst[lane.row] && slice < trace.rowFirst[lane.row + 1]) app.select(slice);
  }
  private walkLane(step: 1 | -1): void {
    const {app} = this;
    const {trace} = app;
    if (app.selected < 0) { this.walk(1); return; }
    const offset = app.offsetOf(app.selected);
    const ns = (trace.beginNs(app.selected) + trace.endNs(app.selected)) / 2 - offset;
    for (let i = this.laneOfSelected() + step; i >= 0 && i < app.lanes.length; i += step) {
      const lane: Lane = app.lanes[i];
      if (lane.row < 0 || trace.rowFirst[lane.row] === trace.rowFirst[lane.row + 1]) continue;
      let best = trace.rowFirst[lane.row];
      for (let slice = best; slice < trace.rowFirst[lane.row + 1]; ++slice) {
        if (trace.nsOf(lane.warp, trace.begin[slice]) - lane.offsetNs <= ns) best = slice; else break;
      }
      app.select(best);
      return;
    }
  }
  private key(event: KeyboardEvent): void {
    const typing = event.target instanceof HTMLInputElement || event.target instanceof HTMLSelectElement;
    if (typing || event.ctrlKey || event.metaKey || event.altKey || byId<HTMLDialogElement>('keys').open) return;
    const onButton = event.target instanceof HTMLButtonElement && (event.key === ' ' || event.key === 'Enter');
    if (onButton) return;
    const {app} = this;
    const actions: Record<string, () => void> = {
      w: () => app.zoom(0.7), s: () => app.zoom(1 / 0.7), a: () => app.pan(-0.15), d: () => app.pan(0.15),
      ArrowLeft: () => app.pan(-0.15), ArrowRight: () => app.pan(0.15),
      ArrowUp: () => app.scrollBy(-60), ArrowDown: () => app.scrollBy(60),
      PageUp: () => app.scrollBy(-app.height * 0.9), PageDown: () => app.scrollBy(app.height * 0.9),
      '.': () => this.walk(1), ',': () => this.walk(-1), j: () => this.walkLane(1), k: () => this.walkLane(-1),
      ']': () => this.panels.instance(1), '[': () => this.panels.instance(-1),
      f: () => app.zoomToSelected(), Enter: () => app.zoomToSelected(), 0: () => app.fit(),
      '+': () => app.setLaneHeight(app.laneHeight + 2), '=': () => app.setLaneHeight(app.laneHeight + 2),
      '-': () => app.setLaneHeight(app.laneHeight - 2),
      m: () => this.toggleMeasure(), r: () => this.toggleRoles(), t: () => this.toggleTheme(),
      '?': () => this.help(), '/': () => byId('search').focus(),
      ' ': () => { const lane = app.lanes[this.laneOfSelected()] ?? app.lanes[0]; if (lane) app.toggle(lane.node); },
      Escape: () => { app.span = null; app.box = null; app.select(-1); },
    };
    const act = actions[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (!act) return;
    event.preventDefault();
    act();
  }

  private search(): void {
    const box = byId<HTMLInputElement>('search');
    const {app} = this;
    let waiting = 0;
    const apply = () => {
      app.query = box.value.trim() ? new Query(app.trace, box.value) : null;
      if (app.query?.needsValues && !app.trace.hasValues) {
        byId('found').textContent = 'reading payloads ...';
        waiting = window.setTimeout(apply, 100);
        return;
      }
      byId('found').textContent = app.query ? `${plural(app.query.count(), 'match').replace('matchs', 'matches')}${app.query.partial ? ' outside the summary' : ''}` : '';
      app.changed();
    };
    box.addEventListener('input', () => { clearTimeout(waiting); waiting = window.setTimeout(apply, 120); });
    box.addEventListener('keydown', (event) => {
      if (event.key === 'Enter') {
        clearTimeout(waiting);
        if (app.query?.text !== box.value) apply();
        const next = app.query?.needsValues && !app.trace.hasValues ? -1 : app.query?.next(app.selected, event.shiftKey ? -1 : 1) ?? -1;
        if (next >= 0) app.select(next);
      } else if (event.key === 'Escape') {
        box.value = '';
        apply();
        this.holder.focus();
      }
    });
  }
}
