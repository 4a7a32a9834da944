// layout.ts: which lanes there are, from top to bottom: launches, SMs, CTAs, and the rows of warps.
// What is folded is one lane with all its warps in small. By role it is launches, warps of a CTA by
// their number, and that warp of every CTA, each from its CTA's start.
import {Trace} from './trace';

export interface Node {
  key: string; label: string; level: number; warps: number[]; children: Node[]; order: number;
  count: number;  // of warps, those of a summary as well
}
export interface Lane {
  y: number; height: number; node: Node;
  row: number;      // of the trace; -1: a heading, or what is folded
  warp: number;     // of the row; -1
  label: string;
  level: number;
  folded: boolean;
  offsetNs: number; // is subtracted from times
}
export type Order = 'sm' | 'cta' | 'start' | 'time';

// Summaries stand last, by SM: their order is no number of which a difference can be had.
const byOrder = (a: Node, b: Node): number => a.order < b.order ? -1 : a.order > b.order ? 1 : 0;

export function buildTree(trace: Trace, order: Order): Node[] {
  const launches = trace.head.launches.map((head, i): Node =>
    ({key: `l${i}`, label: head.label, level: 0, warps: [], children: [], order: i, count: 0}));
  const nodes = new Map<string, Node>();
  const child = (parent: Node, key: string, label: string, rank: number): Node => {
    let node = nodes.get(parent.key + key);
    if (!node) {
      node = {key: parent.key + key, label, level: parent.level + 1, warps: [], children: [], order: rank, count: 0};
      nodes.set(node.key, node);
      parent.children.push(node);
    }
    return node;
  };
  for (let warp = 0; warp < trace.warpCount; ++warp) {
    const launch = launches[trace.launchOf[warp]];
    const place = trace.ctaX[warp] + trace.ctaY[warp] * 2 ** 20 + trace.ctaZ[warp] * 2 ** 36;
    const sm = order === 'sm' ? child(launch, `s${trace.sm[warp]}`, `SM ${trace.sm[warp]}`, trace.sm[warp]) : launch;
    const label = trace.ctaLabel(warp) + (order === 'sm' ? '' : `  SM ${trace.sm[warp]}`);
    const rank = trace.isLane(warp) ? Infinity : order === 'start' ? trace.warpBegin[warp] :
      order === 'time' ? -(trace.warpEnd[warp] - trace.warpBegin[warp]) : place;
    const cta = trace.isLane(warp) ? `summary${trace.sm[warp]}` : `c${trace.ctaX[warp]}.${trace.ctaY[warp]}.${trace.ctaZ[warp]}`;
    const node = child(sm, cta, label, rank);
    node.order = Math.min(node.order, rank);
    for (const of of sm === launch ? [launch, node] : [launch, sm, node]) {
      of.warps.push(warp);
      of.count += trace.members[warp];
    }
  }
  for (const node of nodes.values()) node.children.sort(byOrder);
  for (const launch of launches) launch.children.sort(byOrder);
  return launches;
}

export function ctaStarts(trace: Trace): Float64Array {
  const first = new Map<string, number>();
  const key = (warp: number) =>
    `${trace.launchOf[warp]} ${trace.ctaX[warp]} ${trace.ctaY[warp]} ${trace.ctaZ[warp]} ${trace.sm[warp]}${trace.isLane(warp) ? ' summary' : ''}`;
  for (let warp = 0; warp < trace.warpCount; ++warp) {
    first.set(key(warp), Math.min(first.get(key(warp)) ?? Infinity, trace.warpBegin[warp]));
  }
  return Float64Array.from(trace.warpBegin, (_, warp) => first.get(key(warp))!);
}

export function buildRoles(trace: Trace): Node[] {
  const launches = trace.head.launches.map((head, i): Node =>
    ({key: `l${i}`, label: head.label, level: 0, warps: [], children: [], order: i, count: 0}));
  const roles = new Map<string, Node>();
  // A lane of a summary has no CTA with which it could begin.
  for (let warp = 0; warp < trace.firstLane; ++warp) {
    const launch = launches[trace.launchOf[warp]];
    const key = `${launch.key}r${trace.index[warp]}`;
    let role = roles.get(key);
    if (!role) {
      role = {key, label: `${trace.warpLabel(warp)} of every CTA`, level: 1, warps: [], children: [], order: trace.index[warp], count: 0};
      roles.set(key, role);
      launch.children.push(role);
    }
    for (const node of [role, launch]) {
      node.warps.push(warp);
      ++node.count;
    }
  }
  for (const launch of launches) launch.children.sort(byOrder);
  return launches;
}

// What is open at first: as much as some hundred warps.
export function firstOpen(trees: Node[]): Set<string> {
  const open = new Set<string>();
  let budget = 128;
  const visit = (node: Node) => {
    if (node.level > 0 && budget < node.warps.length) return;
    open.add(node.key);
    if (node.children.length === 0) budget -= node.warps.length;
    node.children.forEach(visit);
  };
  const first = trees.find((tree) => tree.warps.length > 0);
  if (first) visit(first);
  return open;
}

export function layOut(trace: Trace, trees: Node[], open: Set<string>, laneHeight: number,
                       starts: Float64Array | null): Lane[] {
  const lanes: Lane[] = [];
  let y = 0;
  const add = (lane: Omit<Lane, 'y'>) => { lanes.push({...lane, y}); y += lane.height; };
  const visit = (node: Node) => {
    if (node.warps.length === 0) return;
    const isOpen = open.has(node.key);
    add({height: node.level === 0 ? 24 : Math.max(20, Math.min(26, laneHeight + 4)), node, row: -1, warp: -1, label: node.label, level: node.level, folded: !isOpen, offsetNs: 0});
    if (!isOpen) return;
    node.children.forEach(visit);
    if (node.children.length > 0) return;
    for (const warp of node.warps) {
      const first = trace.warpRow[warp];
      const end = trace.warpRow[warp + 1];
      const offsetNs = starts ? starts[warp] : 0;
      const name = starts ? trace.ctaLabel(warp) : trace.warpLabel(warp);
      if (first === end) {
        add({height: laneHeight, node, row: -1, warp, label: name, level: node.level + 1, folded: false, offsetNs});
      }
      for (let row = first; row < end; ++row) {
        const kind = trace.rowHead(row);
        const what = kind.group || kind.lane || kind.token;
        add({height: kind.marks ? Math.max(1, Math.ceil(laneHeight * 0.6)) : laneHeight, node, row, warp,
          label: row === first ? name : kind.marks ? `${what} marks`.trim() : what, level: node.level + 1,
          folded: false, offsetNs});
      }
      if (laneHeight >= 8) y += 3;
    }
  };
  trees.forEach(visit);
  return lanes;
}

// The index of the lane at height `y`, of lanes that are not empty.
export function laneAt(lanes: Lane[], y: number): number {
  let low = 0;
  let high = lanes.length;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (lanes[middle].y <= y) low = middle; else high = middle;
  }
  return low;
}
