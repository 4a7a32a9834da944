// text.ts: times and counts as people read them, and elements whose text is never markup.

// With no more digits than a clock of half a nanosecond has.
export function time(ns: number): string {
  if (Number.isNaN(ns)) return '–';  // not known
  const size = Math.abs(ns);
  if (size < 1000) return `${size < 100 ? ns.toFixed(1) : ns.toFixed(0)} ns`;
  const [unit, scale] = size < 1e6 ? ['us', 1e3] : size < 1e9 ? ['ms', 1e6] : ['s', 1e9];
  const value = ns / scale;
  return `${value.toFixed(Math.abs(value) < 10 ? 3 : Math.abs(value) < 100 ? 2 : 1)} ${unit}`;
}
export const count = (n: number): string => n.toLocaleString('en-US');
export const plural = (n: number, word: string): string => `${count(n)} ${word}${n === 1 ? '' : 's'}`;
export const short = (text: string, most = 120): string =>
  text.length > most ? text.slice(0, most) + '…' : text;

export function make<K extends keyof HTMLElementTagNameMap>(
    tag: K, text = '', className = '', ...children: Node[]): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  if (text) element.textContent = text;
  if (className) element.className = className;
  element.append(...children);
  return element;
}
export function byId<T extends HTMLElement = HTMLElement>(id: string): T {
  const element = document.getElementById(id);
  if (!element) throw new Error(`no element ${id}`);
  return element as T;
}
export function link(text: string, go: () => void): HTMLButtonElement {
  const button = make('button', text, 'link');
  button.addEventListener('click', go);
  return button;
}
// Rows of a description list.
export function facts(rows: [string, string | Node][]): HTMLElement {
  const list = make('dl');
  for (const [term, value] of rows) {
    const data = make('dd');
    data.append(value);
    list.append(make('dt', term), data);
  }
  return list;
}
