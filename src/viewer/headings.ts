// headings.ts: what folds by keyboard alone. Each heading in view is an element over its place on the
// canvas, without a look but for the mark of focus: a tree, as screen readers know them. One of them
// is on the way of Tab; from it arrows lead to all others, which come into view.
import {App} from './app';
import {Lane, Node} from './layout';
import {byId, make, plural, short} from './text';

export class Headings {
  private readonly holder = byId('headings');
  private readonly shown = new Map<string, HTMLElement>();  // by key of the node
  private current = '';  // the key of the one on the way of Tab

  constructor(private readonly app: App) {
    app.onFrame.push(() => this.draw());
    this.holder.addEventListener('keydown', (event) => this.key(event));
    this.holder.addEventListener('focusin', (event) => {
      this.current = (event.target as HTMLElement).dataset.key ?? '';
      this.tabStop();
    });
    // As who reads the screen to somebody does it.
    this.holder.addEventListener('click', (event) => this.toggle((event.target as HTMLElement).dataset.key));
  }

  private get headings(): Lane[] { return this.app.lanes.filter((lane) => lane.row < 0 && lane.warp < 0); }

  private draw(): void {
    const {app, shown} = this;
    const wanted = new Set<string>();
    for (const lane of app.headingsInView()) this.place(lane, wanted);
    // The one with the focus stays, or the focus would be nowhere.
    for (const [key, element] of shown) {
      if (wanted.has(key)) continue;
      const lane = element === document.activeElement ? this.laneOf(key) : undefined;
      if (lane) { this.place(lane, wanted); continue; }
      element.remove();
      shown.delete(key);
    }
    this.tabStop();
  }
  private place(lane: Lane, wanted: Set<string>): void {
    const {node} = lane;
    let element = this.shown.get(node.key);
    if (!element) {
      element = make('div', '', 'heading');
      element.dataset.key = node.key;
      element.setAttribute('role', 'treeitem');
      element.tabIndex = -1;
      this.shown.set(node.key, element);
      this.holder.append(element);
    }
    element.setAttribute('aria-label', short(node.label) + (node.count ? `, ${plural(node.count, 'warp')}` : ''));
    element.setAttribute('aria-level', String(node.level + 1));
    element.setAttribute('aria-expanded', String(!lane.folded));
    element.style.top = `${this.app.yOf(lane)}px`;
    element.style.height = `${lane.height}px`;
    element.style.width = `${this.app.gutter - 2}px`;
    wanted.add(node.key);
  }
  private tabStop(): void {
    const stop = this.shown.has(this.current) ? this.current : [...this.shown.keys()][0];
    for (const [key, element] of this.shown) element.tabIndex = key === stop ? 0 : -1;
  }

  private laneOf(key: string): Lane | undefined { return this.headings.find((lane) => lane.node.key === key); }
  private toggle(key = ''): void {
    const lane = this.laneOf(key);
    if (lane) this.app.toggle(lane.node);
  }
  // To a heading, which comes into view.
  private go(lane: Lane | undefined): void {
    if (!lane) return;
    const {app} = this;
    if (lane.y < app.scroll || lane.y + lane.height > app.scroll + app.height) app.scroll = lane.y - app.height / 3;
    app.frame();
    this.shown.get(lane.node.key)?.focus({preventScroll: true});
  }
  private key(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const key = (event.target as HTMLElement).dataset.key ?? '';
    const all = this.headings;
    const at = all.findIndex((lane) => lane.node.key === key);
    if (at < 0) return;
    const {node, folded} = all[at];
    const holds = (outer: Node) => outer.children.includes(node);
    const actions: Record<string, () => void> = {
      ' ': () => this.toggle(key), Enter: () => this.toggle(key),
      ArrowDown: () => this.go(all[at + 1]), ArrowUp: () => this.go(all[at - 1]),
      Home: () => this.go(all[0]), End: () => this.go(all[all.length - 1]),
      ArrowRight: () => { if (folded) this.toggle(key); else this.go(all.find((lane) => lane.node === node.children[0])); },
      ArrowLeft: () => { if (!folded) this.toggle(key); else this.go(all.find((lane) => holds(lane.node))); },
    };
    const act = actions[event.key];
    if (!act) return;
    event.preventDefault();
    event.stopPropagation();
    act();
  }
}
