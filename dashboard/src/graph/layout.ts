// Computes the layout of the graph: layers from left to right, from publishers to subscribers.
//
// The method is Sugiyama's (Sugiyama, Tagawa, Toda 1981): edges that close a cycle are reversed, each vertex
// gets the layer after its last predecessor, long edges get a vertex in each layer that they cross, the
// layers are ordered by the barycentres of their neighbours, and the heights follow the neighbours as far as
// the order allows. The layout is deterministic, so that it is stable while the graph does not change.

export interface Vertex {
  id: string;
  width: number;
  height: number;
}

export interface PlacedVertex extends Vertex {
  x: number;
  y: number;
}

export interface Route {
  from: string;
  to: string;
  points: [number, number][];
}

/** Direction of the layout: `right` if it fits the page width, `down` if a chain is longer. */
export type Direction = "right" | "down";

export interface Layout {
  way: Direction;
  placed: Map<string, PlacedVertex>;
  routes: Route[];
  /** Origin of the layout. */
  left: number;
  top: number;
  width: number;
  height: number;
}

interface LayoutVertex extends Vertex {
  layer: number;
  y: number;
  /** Its position in the layer. */
  order: number;
  before: LayoutVertex[];
  behind: LayoutVertex[];
  passes: boolean;
}

/** Gaps between layers, and within one. */
export const GAPS = { right: 52, down: 30 };
export const GAP_ACROSS = 14;
const DUMMY_HEIGHT = 6;
const SWEEPS = 12;

export function layout(vertices: Vertex[], edges: [string, string][], way: Direction): Layout {
  if (way === "right") return layered(vertices, edges, way);
  const turned = vertices.map(({ id, width, height }) => ({ id, width: height, height: width }));
  const { placed, routes, width, height } = layered(turned, edges, way);
  const upright = [...placed].map(([id, p]) => [id, { id, x: p.y, y: p.x, width: p.height, height: p.width }] as const);
  const lines = routes.map((route) => ({ ...route, points: route.points.map(([x, y]) => [y, x] as [number, number]) }));
  return { way, placed: new Map(upright), routes: lines, left: 0, top: 0, width: height, height: width };
}

function layered(vertices: Vertex[], edges: [string, string][], way: Direction): Layout {
  const works = new Map<string, LayoutVertex>();
  for (const vertex of [...vertices].sort((a, b) => (a.id < b.id ? -1 : 1))) {
    works.set(vertex.id, { ...vertex, layer: 0, y: 0, order: 0, before: [], behind: [], passes: false });
  }
  const known = edges.filter(([from, to]) => works.has(from) && works.has(to) && from !== to);
  const turned = reverse_cycles([...works.keys()], known);
  const forward = known.map(([from, to], i) => (turned.has(i) ? [to, from] : [from, to]) as [string, string]);
  set_layers(works, forward);
  const { layers, chains } = add_dummy_vertices(works, forward);
  order(layers);
  set_heights(layers);
  return result(layers, chains, known, turned, way);
}

/** The indices of edges that close a cycle, searched from the sources. */
function reverse_cycles(ids: string[], edges: [string, string][]): Set<number> {
  const out = new Map<string, number[]>(ids.map((id) => [id, []]));
  const incoming = new Map<string, number>(ids.map((id) => [id, 0]));
  edges.forEach(([from, to], i) => {
    out.get(from)!.push(i);
    incoming.set(to, incoming.get(to)! + 1);
  });
  const turned = new Set<number>();
  const state = new Map<string, "open" | "done">();
  const starts = [...ids.filter((id) => incoming.get(id) === 0), ...ids];
  for (const start of starts) {
    if (state.has(start)) continue;
    state.set(start, "open");
    // An explicit stack, because a chain may be deeper than the browser's call stack.
    const stack: { id: string; at: number }[] = [{ id: start, at: 0 }];
    while (stack.length) {
      const top = stack[stack.length - 1]!;
      const edge = out.get(top.id)![top.at++];
      if (edge === undefined) {
        state.set(top.id, "done");
        stack.pop();
        continue;
      }
      const to = edges[edge]![1];
      if (state.get(to) === "open") turned.add(edge);
      else if (!state.has(to)) {
        state.set(to, "open");
        stack.push({ id: to, at: 0 });
      }
    }
  }
  return turned;
}

function set_layers(works: Map<string, LayoutVertex>, edges: [string, string][]): void {
  const out = new Map<string, string[]>();
  const missing = new Map<string, number>();
  for (const [from, to] of edges) {
    out.set(from, [...(out.get(from) ?? []), to]);
    missing.set(to, (missing.get(to) ?? 0) + 1);
  }
  const ready = [...works.keys()].filter((id) => !missing.get(id));
  const sorted: string[] = [];
  for (let id = ready.shift(); id !== undefined; id = ready.shift()) {
    sorted.push(id);
    for (const to of out.get(id) ?? []) {
      const next = works.get(to)!;
      next.layer = Math.max(next.layer, works.get(id)!.layer + 1);
      missing.set(to, missing.get(to)! - 1);
      if (missing.get(to) === 0) ready.push(to);
    }
  }
  // A source is placed just before its first successor, which shortens its edges.
  for (const id of sorted.reverse()) {
    const next = (out.get(id) ?? []).map((to) => works.get(to)!.layer);
    if (next.length) works.get(id)!.layer = Math.min(...next) - 1;
  }
}

function add_dummy_vertices(works: Map<string, LayoutVertex>, edges: [string, string][]): { layers: LayoutVertex[][]; chains: LayoutVertex[][] } {
  const layers: LayoutVertex[][] = [];
  const put = (work: LayoutVertex) => {
    while (layers.length <= work.layer) layers.push([]);
    layers[work.layer]!.push(work);
  };
  for (const work of works.values()) put(work);
  const chains = edges.map(([from, to]) => {
    const chain = [works.get(from)!];
    const last = works.get(to)!;
    for (let layer = chain[0]!.layer + 1; layer < last.layer; layer++) {
      const id = `${from}\0${to}\0${layer}`;
      const pass = { id, width: 0, height: DUMMY_HEIGHT, layer, y: 0, order: 0, before: [], behind: [], passes: true };
      put(pass);
      chain.push(pass);
    }
    chain.push(last);
    for (let i = 0; i + 1 < chain.length; i++) {
      chain[i]!.behind.push(chain[i + 1]!);
      chain[i + 1]!.before.push(chain[i]!);
    }
    return chain;
  });
  return { layers, chains };
}

function order(layers: LayoutVertex[][]): void {
  const number = (layer: LayoutVertex[]) => layer.forEach((work, i) => (work.order = i));
  layers.forEach(number);
  const centre = (work: LayoutVertex, of: LayoutVertex[]) => (of.length ? of.reduce((sum, w) => sum + w.order, 0) / of.length : work.order);
  const sweep = (layer: LayoutVertex[], side: "before" | "behind") => {
    const keys = new Map(layer.map((work) => [work, centre(work, work[side])]));
    layer.sort((a, b) => keys.get(a)! - keys.get(b)! || a.order - b.order);
    number(layer);
  };
  let best = layers.map((layer) => [...layer]);
  let fewest = crossings(layers);
  for (let i = 0; i < SWEEPS && fewest > 0; i++) {
    for (let l = 1; l < layers.length; l++) sweep(layers[l]!, "before");
    for (let l = layers.length - 2; l >= 0; l--) sweep(layers[l]!, "behind");
    const now = crossings(layers);
    if (now < fewest) {
      fewest = now;
      best = layers.map((layer) => [...layer]);
    }
  }
  best.forEach((layer, l) => {
    layers[l] = layer;
    number(layer);
  });
}

function crossings(layers: LayoutVertex[][]): number {
  let all = 0;
  for (const layer of layers) {
    const ends: number[] = [];
    for (const work of layer) ends.push(...work.behind.map((w) => w.order).sort((a, b) => a - b));
    for (let i = 0; i < ends.length; i++) for (let j = i + 1; j < ends.length; j++) if (ends[i]! > ends[j]!) all++;
  }
  return all;
}

function set_heights(layers: LayoutVertex[][]): void {
  for (const layer of layers) {
    let y = 0;
    for (const work of layer) {
      work.y = y;
      y += work.height + GAP_ACROSS;
    }
  }
  for (let i = 0; i < 20; i++) {
    const down = i % 2 === 0;
    const all = down ? layers : [...layers].reverse();
    for (const layer of all) follow(layer, down ? "before" : "behind", i >= 16);
  }
}

/** Moves each vertex of a layer to the middle of its neighbours, as far as the order and the gaps allow. */
function follow(layer: LayoutVertex[], side: "before" | "behind", both: boolean): void {
  const middle = (w: LayoutVertex) => w.y + w.height / 2;
  const wanted = layer.map((work) => {
    const of = both ? [...work.before, ...work.behind] : work[side];
    if (!of.length) return work.y;
    return of.reduce((sum, w) => sum + middle(w), 0) / of.length - work.height / 2;
  });
  // Vertices that would overlap form a block, placed at the mean of its members' targets.
  const blocks: { first: number; sum: number; n: number; height: number }[] = [];
  layer.forEach((work, i) => {
    blocks.push({ first: i, sum: wanted[i]!, n: 1, height: work.height + GAP_ACROSS });
    while (blocks.length > 1) {
      const last = blocks[blocks.length - 1]!;
      const previous = blocks[blocks.length - 2]!;
      if (previous.sum / previous.n + previous.height <= last.sum / last.n) break;
      previous.sum += last.sum - last.n * previous.height;
      previous.n += last.n;
      previous.height += last.height;
      blocks.pop();
    }
  });
  for (const block of blocks) {
    let y = block.sum / block.n;
    for (let i = block.first; i < block.first + block.n; i++) {
      layer[i]!.y = y;
      y += layer[i]!.height + GAP_ACROSS;
    }
  }
}

function result(layers: LayoutVertex[][], chains: LayoutVertex[][], edges: [string, string][], turned: Set<number>, way: Direction): Layout {
  const placed = new Map<string, PlacedVertex>();
  const top = Math.min(0, ...layers.flat().map((work) => work.y));
  const at = new Map<LayoutVertex, { x: number; width: number }>();
  let x = 0;
  let height = 0;
  for (const layer of layers) {
    const width = Math.max(0, ...layer.map((work) => work.width));
    for (const work of layer) {
      work.y -= top;
      height = Math.max(height, work.y + work.height);
      at.set(work, { x, width });
      const { id, width: own, height: tall } = work;
      if (!work.passes) placed.set(id, { id, width: own, height: tall, x: x + (width - own) / 2, y: work.y });
    }
    x += width + GAPS[way];
  }
  const routes = chains.map((chain, i) => {
    const points: [number, number][] = [];
    chain.forEach((work, j) => {
      const { x, width } = at.get(work)!;
      const y = work.y + work.height / 2;
      const left = work.passes ? x : x + (width - work.width) / 2;
      const right = work.passes ? x + width : left + work.width;
      if (j > 0) points.push([left, y]);
      if (j < chain.length - 1) points.push([right, y]);
    });
    if (turned.has(i)) points.reverse();
    return { from: edges[i]![0], to: edges[i]![1], points };
  });
  return { way, placed, routes, left: 0, top: 0, width: Math.max(0, x - GAPS[way]), height };
}

/** A smooth line through the points, with tangents in the direction of the layout. */
export function path(points: [number, number][], way: Direction): string {
  let text = `M${round(points[0]![0])} ${round(points[0]![1])}`;
  for (let i = 1; i < points.length; i++) {
    const [x0, y0] = points[i - 1]!;
    const [x1, y1] = points[i]!;
    const [bx, by] = way === "right" ? [(x1 - x0) / 2, 0] : [0, (y1 - y0) / 2];
    text += `C${round(x0 + bx)} ${round(y0 + by)} ${round(x1 - bx)} ${round(y1 - by)} ${round(x1)} ${round(y1)}`;
  }
  return text;
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
