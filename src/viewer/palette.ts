// palette.ts: colours of names, told apart by people who do not see all colours, and stable: a name
// has its colour in every trace, unless another name of this trace took it first.
import {Declaration} from './format';

// Okabe and Ito, then Paul Tol's "muted" and "light".
const COLOURS = [0x0072b2, 0xe69f00, 0x009e73, 0xcc79a7, 0x56b4e9, 0xd55e00, 0xf0e442, 0x882255,
  0x44aa99, 0xddcc77, 0x6a4c93, 0x99ddff, 0xaaaa00, 0xee8866, 0x117733, 0xffaabb];

export function hash(text: string): number {
  let value = 0x811c9dc5;
  for (let i = 0; i < text.length; ++i) value = Math.imul(value ^ text.charCodeAt(i), 0x01000193);
  return value >>> 0;
}

// 0xRRGGBB of each declaration.
export function assignColours(declarations: Declaration[]): number[] {
  const ofName = new Map<string, number>();
  const taken = new Set<number>();
  return declarations.map(({name, colour}) => {
    if (colour >= 0) return colour;
    const known = ofName.get(name);
    if (known !== undefined) return known;
    let at = hash(name) % 8;  // the best of them; the others where more names are
    for (let tries = 0; taken.has(at) && tries < COLOURS.length; ++tries) at = (at + 1) % COLOURS.length;
    taken.add(at);
    ofName.set(name, COLOURS[at]);
    return COLOURS[at];
  });
}

export const css = (rgb: number): string => '#' + rgb.toString(16).padStart(6, '0');
export function mix(a: number, b: number, share: number): number {
  const part = (shift: number) => {
    const x = a >> shift & 255;
    return Math.round(x + ((b >> shift & 255) - x) * share) << shift;
  };
  return part(16) | part(8) | part(0);
}
// As a pixel of ImageData on a little-endian machine.
export const pixel = (rgb: number): number =>
  (0xff000000 | (rgb & 255) << 16 | (rgb & 0xff00) | rgb >> 16) >>> 0;
export const isLight = (rgb: number): boolean =>
  0.299 * (rgb >> 16) + 0.587 * (rgb >> 8 & 255) + 0.114 * (rgb & 255) > 140;
