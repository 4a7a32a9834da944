// panels.ts: what stands beside the lanes: details of the selection, statistics, legend, the trace.
import {App} from './app';
import {commandFor} from './cells';
import {css} from './palette';
import {addCells, binStart, histogram, ofLaunch, summarize, Summary} from './statistics';
import {byId, count, facts, link, make, plural, short, time} from './text';
import {Link, valueText} from './trace';

const PANES = ['details', 'statistics', 'legend', 'trace'];
const KINDS = ['mark', 'pushed range', 'pop', 'range', 'range end', 'token range', 'token end', 'flow out', 'flow in', 'clock reading', 'token range', 'unknown'];

export class Panels {
  private shownFor = -2;
  private statisticsOf = -1;

  constructor(private readonly app: App) {
    for (const pane of PANES) byId(`tab-${pane}`).addEventListener('click', () => this.show(pane));
    this.legend();
    this.trace();
    app.onFrame.push(() => { if (app.selected !== this.shownFor) this.details(); });
  }
  show(pane: string): void {
    for (const name of PANES) {
      byId(name).hidden = name !== pane;
      byId(`tab-${name}`).setAttribute('aria-selected', String(name === pane));
    }
    if (pane === 'statistics') this.statistics();
  }
  // When payloads have come.
  again(): void { this.shownFor = -2; this.app.changed(); }
  private get launch(): number {
    const {trace, selected} = this.app;
    return selected >= 0 ? trace.launchOf[trace.rowWarp[trace.rowOf(selected)]] : trace.launchOf[0] ?? 0;
  }

  private details(): void {
    const {app} = this;
    const {trace, selected} = app;
    this.shownFor = selected;
    const pane = byId('details');
    pane.replaceChildren();
    if (selected < 0) {
      pane.append(make('p', 'Click a range or a mark, or press . to take the first.', 'dim'));
      return;
    }
    if (trace.isCell(selected)) { this.cell(pane); return; }
    const row = trace.rowOf(selected);
    const warp = trace.rowWarp[row];
    const declared = trace.head.declarations[trace.decl[selected]];
    const clock = trace.clockOf(warp);
    const begin = trace.beginNs(selected);
    const cycles = trace.cyclesOf(selected);
    const coarse = trace.shift[warp] > 0 ? ` ± ${2 ** trace.shift[warp]}` : '';
    const point = trace.rowHead(row).marks;
    const title = make('h2', '', '', this.swatch(trace.decl[selected]));
    title.append(declared.name);
    const rows: [string, string | Node][] = [];
    if (!point) rows.push(['duration', `${time(trace.endNs(selected) - begin)}  =  ${count(cycles)}${coarse} cycles`]);
    rows.push(['begin', `${time(begin)} in the trace`]);
    rows.push(['in the warp', `${time(begin - trace.warpBegin[warp])}  =  ${count(trace.begin[selected] * 2 ** trace.shift[warp])}${coarse} cycles after its begin`]);
    const bits = trace.payload(selected);
    if (bits !== undefined) rows.push([declared.payload || 'payload', valueText(declared.type, bits)]);
    for (const value of trace.values(selected)) rows.push([value.name, value.text]);
    if (!trace.hasValues && declared.type !== 0) rows.push([declared.payload || 'payload', 'is being read ...']);
    rows.push(['kind', KINDS[declared.kind] ?? '?']);
    if (declared.category) rows.push(['category', declared.category]);
    if (declared.file) rows.push(['source', `${declared.file}:${declared.line}`]);
    rows.push(['warp', `${trace.warpLabel(warp)}, ${trace.ctaLabel(warp)}`]);
    rows.push(['SM', `${trace.sm[warp]}${trace.slot[warp] === 255 ? '' : `, slot ${trace.slot[warp]}`}`]);
    rows.push(['launch', trace.launch(warp).label]);
    rows.push(['across SMs', `± ${clock.residual.toFixed(0)} ns (largest residual of this SM's clock)`]);
    pane.append(title, facts(rows));
    const flags = trace.flags.get(selected) ?? 0;
    if (flags & 1) pane.append(make('p', flags & 4 ? 'Its end is lost: records after it were overwritten.' : 'It was never closed: it ends where its warp does.', 'warn'));
    if (flags & 2) pane.append(make('p', 'It overlaps another range of its warp without nesting in it: lanes of the warp had diverged.', 'warn'));
    const walk = make('p');
    walk.append(link('‹ previous', () => this.instance(-1)), '   ', link('next ›', () => this.instance(1)), make('span', '   of this name  ([ and ])', 'dim'));
    pane.append(walk);
    this.links(pane);
    this.histogram(pane, point);
  }
  // Of a cell of the summary.
  private cell(pane: HTMLElement): void {
    const {app} = this;
    const {trace, selected} = app;
    const warp = trace.rowWarp[trace.rowOf(selected)];
    const [begin, end, cycles] = [trace.beginNs(selected), trace.endNs(selected), trace.cyclesOf(selected)];
    const parts = trace.cells.partsOf(selected - trace.firstCell).sort((a, b) => b.cycles - a.cycles || b.n - a.n);
    pane.append(make('h2', 'A summary, not a range'),
      make('p', 'What goes on in this piece of time, added up. Counts are of what begins in it; times are what passes in it; both are exact.', 'dim'),
      facts([['lasts', `${time(end - begin)}  =  ${count(cycles)} cycles`], ['begin', `${time(begin)} in the trace`],
        ['SM', `${trace.sm[warp]}`], ['of', `${trace.warpLabel(warp)}`], ['launch', trace.launch(warp).label]]));
    const table = make('table');
    const head = make('tr');
    for (const word of ['name', 'n', 'cycles', 'at a time']) head.append(make('th', word));
    table.append(head);
    for (const part of parts) {
      const line = make('tr');
      const name = make('td', '', '', this.swatch(part.decl));
      name.append(short(trace.head.declarations[part.decl].name, 80));
      line.append(name);
      for (const text of [count(part.n), count(part.cycles), (part.cycles / cycles).toFixed(2)]) line.append(make('td', text));
      table.append(line);
    }
    const more = make('p', 'One by one: ', 'dim');
    more.append(make('code', commandFor(app, ` --sm ${trace.sm[warp]}`, [begin, end])));
    pane.append(table, more);
  }
  private swatch(decl: number): HTMLElement {
    const box = make('span', '', 'swatch');
    box.style.backgroundColor = css(this.app.colours[decl]);
    return box;
  }
  private links(pane: HTMLElement): void {
    const {trace} = this.app;
    const {incoming, outgoing} = this.app.linksOf(this.app.selected);
    const list = (heading: string, links: Link[], other: (it: Link) => number) => {
      if (links.length === 0) return;
      pane.append(make('h3', heading));
      for (const it of links.slice(0, 20)) {
        const slice = other(it);
        const warp = trace.rowWarp[trace.rowOf(slice)];
        const line = make('p');
        const lag = trace.beginNs(it.to) - trace.endNs(it.from);
        line.append(link(`${short(trace.name(slice), 60)}, ${trace.ctaLabel(warp)}, ${trace.warpLabel(warp)}`, () => this.app.select(slice)),
          make('span', `  ${it.toEnd ? '' : time(lag)} ${it.edge ? short(trace.head.edges[it.edge - 1], 60) : ''}`, 'dim'));
        pane.append(line);
      }
      if (links.length > 20) pane.append(make('p', `and ${count(links.length - 20)} more`, 'dim'));
    };
    list('Waited for', incoming, (it) => it.from);
    list('Lets go on', outgoing, (it) => it.to);
  }
  private histogram(pane: HTMLElement, point: boolean): void {
    if (point) return;
    const {trace, selected} = this.app;
    const name = trace.name(selected);
    const same = trace.head.declarations.map((declared) => declared.name === name);
    const times: number[] = [];
    ofLaunch(trace, this.launch, (slice, ns) => { if (same[trace.decl[slice]]) times.push(ns); });
    const {first, counts} = histogram(times);
    const most = Math.max(...counts);
    const own = Math.floor(2 * Math.log2(Math.max(trace.endNs(selected) - trace.beginNs(selected), 0.5))) - first;
    const bars = make('div', '', 'bars');
    bars.id = 'histogram';
    counts.forEach((n, i) => {
      const bar = make('div', '', i === own ? 'here' : '');
      bar.style.height = n === 0 ? '0' : `${Math.max(2, n / most * 68)}px`;
      bar.title = `${time(binStart(first + i))} to ${time(binStart(first + i + 1))}: ${count(n)}`;
      bars.append(bar);
    });
    const axis = make('div', '', 'axis');
    axis.append(make('span', time(binStart(first))), make('span', time(binStart(first + counts.length))));
    pane.append(make('h3', `Durations of ${plural(times.length, 'instance')} in this launch${trace.head.summary ? ', outside the summary' : ''}`), bars, axis);
  }
  instance(step: 1 | -1): void {
    const {trace, selected} = this.app;
    if (selected < 0) return;
    const name = trace.name(selected);
    const same = trace.head.declarations.map((declared) => declared.name === name);
    for (let i = 1; i <= trace.sliceCount; ++i) {
      const at = (selected + step * i + trace.sliceCount * 2) % trace.sliceCount;
      if (!trace.isCell(at) && same[trace.decl[at]]) { this.app.select(at); return; }
    }
  }

  statistics(): void {
    const pane = byId('statistics');
    if (this.statisticsOf === this.launch && pane.childElementCount > 0) return;
    this.statisticsOf = this.launch;
    const {trace} = this.app;
    const rows = addCells(trace, this.launch, summarize(trace, (visit) => ofLaunch(trace, this.launch, visit)));
    pane.replaceChildren(make('h2', trace.head.launches[this.launch]?.label ?? ''), this.table(rows));
  }
  // What a box over the lanes holds.
  ofBox(rows: Summary[], slices: number, span: number, lanes: number, cells: number): void {
    const pane = byId('statistics');
    this.statisticsOf = -1;
    pane.replaceChildren(make('h2', `${plural(slices, 'slice')} in the box`),
      make('p', `${plural(lanes, 'lane')}, ${time(span)}`, 'dim'), this.table(rows));
    if (cells > 0) pane.append(make('p', `${plural(cells, 'piece')} of the summary not counted: the box may cut them.`, 'warn'));
    for (const name of PANES) {
      byId(name).hidden = name !== 'statistics';
      byId(`tab-${name}`).setAttribute('aria-selected', String(name === 'statistics'));
    }
  }
  private table(rows: Summary[]): HTMLElement {
    const table = make('table');
    const head = make('tr');
    for (const word of ['name', 'n', 'median', 'p99', 'total']) head.append(make('th', word));
    table.append(head);
    for (const row of rows) {
      const line = make('tr');
      const name = make('td', '', '', this.swatch(row.decl));
      name.append(short(row.name, 80));
      name.title = short(row.name, 400);
      line.append(name);
      for (const text of [count(row.n), time(row.median), time(row.p99), time(row.total)]) line.append(make('td', text));
      line.title = `least ${time(row.min)}, most ${time(row.max)}`;
      table.append(line);
    }
    return table;
  }

  private legend(): void {
    const {app} = this;
    const pane = byId('legend');
    const names = new Map<string, {decl: number; n: number}>();
    const counts = new Float64Array(app.trace.head.declarations.length);
    const {decl: all} = app.trace;
    for (let slice = 0; slice < app.trace.firstCell; ++slice) ++counts[all[slice]];
    app.trace.cells.addCounts(counts);
    app.trace.head.declarations.forEach(({name}, decl) => {
      if (counts[decl] === 0) return;
      const row = names.get(name);
      if (row) row.n += counts[decl]; else names.set(name, {decl, n: counts[decl]});
    });
    pane.append(make('p', 'Click a name to hide or show it.', 'dim'));
    for (const [name, {decl, n}] of [...names].sort((a, b) => b[1].n - a[1].n)) {
      const button = make('button', '', 'entry', this.swatch(decl), make('span', short(name), 'name'), make('span', count(n), 'dim'));
      button.setAttribute('aria-pressed', 'true');
      button.title = short(name, 400);
      button.addEventListener('click', () => {
        if (!app.hidden.delete(name)) app.hidden.add(name);
        button.setAttribute('aria-pressed', String(!app.hidden.has(name)));
        app.changed();
      });
      pane.append(button);
    }
  }

  private trace(): void {
    const {trace} = this.app;
    const {head} = trace;
    const pane = byId('trace');
    const residual = Math.max(0, ...head.devices.flatMap((device) => device.clocks.map((clock) => clock[0])));
    pane.append(facts([
      ['command', short(head.command, 2000)], ['host', `${head.host}, process ${head.pid}`],
      ['device', head.devices.map((device) => `${device.name}${device.simulated ? ' (software: times are a model\'s, no measurement)' : ''}, ${device.sms} SMs`).join('; ')],
      ['launches', count(head.launches.length)], ['warps', count(trace.allWarps)], ['slices', count(trace.allSlices)],
      ['time', 'cycles are exact within an SM; between SMs the clocks agree to ' + `± ${residual.toFixed(0)} ns`],
      ['time 0', `${head.originNs} ns of %globaltimer`]]));
    if (head.filter) pane.append(make('p', `A part of a capture: ${short(head.filter, 2000)}`, 'warn'));
    const faults = head.counters.filter((counter) => counter.fault);
    pane.append(make('h3', 'What is missing or doubtful'));
    if (faults.length === 0 && head.refused.length === 0 && !head.damage && head.mended === 0) pane.append(make('p', 'Nothing: every record of every warp is here.'));
    if (head.damage) pane.append(make('p', head.damage, 'warn'));
    if (head.mended > 0) pane.append(make('p', `${count(head.mended)} slices overlapped others and were cut`, 'warn'));
    for (const counter of faults) pane.append(make('p', `${count(counter.value)} ${counter.meaning}`, 'warn'));
    for (const {kernel, why} of head.refused) pane.append(make('p', `${short(kernel)} was not recorded: ${why}`, 'warn'));
    for (const launch of head.launches) if (launch.state !== 'complete') pane.append(make('p', `${short(launch.label)}: ${launch.state}`, 'warn'));
  }
}
