// Adds boxes to a layout without moving the others. Each new box gets the free place nearest to its
// neighbours. Places of removed boxes stay free, so that a node that restarts returns to its place.

import { GAP_ACROSS, GAPS, type Layout, type PlacedVertex, type Route, type Vertex, type Direction } from "./layout";

/** A box in coordinates along and across the direction of the layout. */
interface Box {
  id: string;
  along: number;
  across: number;
  length: number;
  breadth: number;
}

interface Column {
  middle: number;
  length: number;
}

/** `null` if most boxes are new: the caller then computes a new layout. `places` includes removed boxes. */
export function extend(places: Map<string, PlacedVertex>, vertices: Vertex[], edges: [string, string][], routes: Route[], way: Direction): Layout | null {
  const fresh = vertices.filter(({ id }) => !places.has(id));
  if (fresh.length > vertices.length / 2) return null;
  const boxes = new Map<string, Box>();
  for (const placed of places.values()) boxes.set(placed.id, box_of(placed, way));
  const columns = columns_of(boxes);
  const shown = new Set(vertices.map(({ id }) => id));
  const known = edges.filter(([from, to]) => shown.has(from) && shown.has(to) && from !== to);
  for (const vertex of in_order(fresh, known, boxes)) put(vertex, known, boxes, columns, way);

  const placed = new Map<string, PlacedVertex>();
  for (const { id } of vertices) placed.set(id, placed_of(boxes.get(id)!, way));
  const old = new Map(routes.map((route) => [`${route.from}>${route.to}`, route]));
  const lines = known.map(([from, to]) => old.get(`${from}>${to}`) ?? straight(boxes.get(from)!, boxes.get(to)!, way));
  return { way, placed, routes: lines, ...bounds(placed, lines) };
}

function box_of({ id, x, y, width, height }: PlacedVertex, way: Direction): Box {
  return way === "right" ? { id, along: x, across: y, length: width, breadth: height } : { id, along: y, across: x, length: height, breadth: width };
}

function placed_of({ id, along, across, length, breadth }: Box, way: Direction): PlacedVertex {
  return way === "right" ? { id, x: along, y: across, width: length, height: breadth } : { id, x: across, y: along, width: breadth, height: length };
}

const middle = (box: Box) => box.along + box.length / 2;

/** The layers: boxes of one layer have the same middle. */
function columns_of(boxes: Map<string, Box>): Column[] {
  const columns: Column[] = [];
  for (const box of [...boxes.values()].sort((a, b) => middle(a) - middle(b))) {
    const last = columns[columns.length - 1];
    if (last && Math.abs(last.middle - middle(box)) < 1) last.length = Math.max(last.length, box.length);
    else columns.push({ middle: middle(box), length: box.length });
  }
  return columns;
}

/** New boxes with placed neighbours first, then their neighbours. */
function in_order(fresh: Vertex[], edges: [string, string][], boxes: Map<string, Box>): Vertex[] {
  const left = new Map([...fresh].sort((a, b) => (a.id < b.id ? -1 : 1)).map((vertex) => [vertex.id, vertex]));
  const done = new Set(boxes.keys());
  const order: Vertex[] = [];
  while (left.size) {
    const beside = edges.flatMap(([from, to]) => [done.has(from) && left.has(to) ? to : null, done.has(to) && left.has(from) ? from : null]);
    const next = beside.find((id) => id !== null) ?? left.keys().next().value!;
    order.push(left.get(next)!);
    left.delete(next);
    done.add(next);
  }
  return order;
}

function put({ id, width, height }: Vertex, edges: [string, string][], boxes: Map<string, Box>, columns: Column[], way: Direction): void {
  const [length, breadth] = way === "right" ? [width, height] : [height, width];
  const of = (ids: string[]) => ids.map((one) => boxes.get(one)).filter((box) => box !== undefined);
  const before = of(edges.filter(([, to]) => to === id).map(([from]) => from));
  const behind = of(edges.filter(([from]) => from === id).map(([, to]) => to));
  const column = (box: Box) => columns.findIndex((one) => Math.abs(one.middle - middle(box)) < 1);
  const at = before.length ? Math.max(...before.map(column)) + 1 : behind.length ? Math.min(...behind.map(column)) - 1 : 0;
  const along = column_at(columns, at, length, GAPS[way]).middle - length / 2;
  const beside = [...before, ...behind];
  const lowest = Math.max(0, ...[...boxes.values()].map((box) => box.across + box.breadth + GAP_ACROSS));
  const wanted = beside.length ? beside.reduce((sum, box) => sum + box.across + box.breadth / 2, 0) / beside.length - breadth / 2 : lowest;
  const others = [...boxes.values()].filter((box) => box.along < along + length && along < box.along + box.length);
  boxes.set(id, { id, along, across: free_place(others, wanted, breadth), length, breadth });
}

/** The column at an index; adds one at either end if needed. */
function column_at(columns: Column[], at: number, length: number, gap: number): Column {
  if (at >= 0 && at < columns.length) return columns[at]!;
  if (!columns.length) columns.push({ middle: 0, length });
  else if (at < 0) columns.unshift({ middle: columns[0]!.middle - columns[0]!.length / 2 - gap - length / 2, length });
  else {
    const last = columns[columns.length - 1]!;
    columns.push({ middle: last.middle + last.length / 2 + gap + length / 2, length });
  }
  return at < 0 ? columns[0]! : columns[columns.length - 1]!;
}

/** The free place nearest to the wanted one. */
function free_place(others: Box[], wanted: number, breadth: number): number {
  const is_free = (across: number) => others.every((box) => across + breadth + GAP_ACROSS <= box.across + 0.01 || box.across + box.breadth + GAP_ACROSS <= across + 0.01);
  const beside = others.flatMap((box) => [box.across - GAP_ACROSS - breadth, box.across + box.breadth + GAP_ACROSS]);
  const places = [wanted, ...beside].filter(is_free);
  return places.reduce((best, place) => (Math.abs(place - wanted) < Math.abs(best - wanted) ? place : best));
}

function straight(from: Box, to: Box, way: Direction): Route {
  const forward = middle(from) <= middle(to);
  const ends = [
    [forward ? from.along + from.length : from.along, from.across + from.breadth / 2],
    [forward ? to.along : to.along + to.length, to.across + to.breadth / 2],
  ] as [number, number][];
  const points = way === "right" ? ends : ends.map(([along, across]) => [across, along] as [number, number]);
  return { from: from.id, to: to.id, points };
}

function bounds(placed: Map<string, PlacedVertex>, routes: Route[]) {
  const boxes = [...placed.values()];
  const points = routes.flatMap((route) => route.points);
  const [xs, ys] = [points.map(([x]) => x), points.map(([, y]) => y)];
  const left = Math.min(...boxes.map((box) => box.x), ...xs);
  const top = Math.min(...boxes.map((box) => box.y), ...ys);
  const width = Math.max(...boxes.map((box) => box.x + box.width), ...xs) - left;
  const height = Math.max(...boxes.map((box) => box.y + box.height), ...ys) - top;
  return { left, top, width, height };
}
