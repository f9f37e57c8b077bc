// The graph of nodes and topics. Boxes keep their places while others are added and removed. A new layout is
// computed when most boxes are new, or on demand.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { useDomain, type KnownNode } from "../domain";
import { href } from "../router";
import type { Figures, TopicRow } from "../wire/types";
import * as units from "../units";
import { extend } from "./extend";
import { layout, path, type Layout, type PlacedVertex, type Vertex, type Direction } from "./layout";

const NODE_HEIGHT = 40;
const TOPIC_HEIGHT = 34;
const CHAR = 6.9;
const MAX_NAME_CHARS = 30;
/** Smaller text is unreadable: below this scale, the picture exceeds its frame. */
const MIN_SCALE = 0.72;

/** The layouts in both directions, and the selected one. */
interface Pictures {
  right: Picture;
  down: Picture;
  best: Direction;
}

/** Places of removed boxes are kept up to this multiple of the visible boxes. */
const MAX_PLACES = 2;

interface Picture extends Layout {
  /** Places of all boxes, including removed ones. */
  places: Map<string, PlacedVertex>;
}

export function Graph({ filter = "" }: { filter?: string }) {
  const { figures, nodes } = useDomain();
  const [zoom, set_zoom] = useState<number | "fit" | "read">("read");
  const [near, set_near] = useState<string | null>(null);
  const frame = useRef<HTMLDivElement>(null);
  const whole = useRef<HTMLDivElement>(null);
  const drag = useDrag(frame);
  const shown = pick(figures, nodes, filter.toLowerCase());
  const [arranged, arrange] = useState(0);
  const signature = JSON.stringify([shown.nodes.map((n) => n.node), shown.topics.map((t) => t.topic), shown.edges]);
  const [room, set_room] = useState(0);
  const [way, set_way] = useState<Direction | null>(null);
  const last = useRef<{ filter: string; arranged: number; both: Pictures } | null>(null);
  const both = useMemo(() => {
    const old = last.current?.filter === filter && last.current.arranged === arranged ? last.current.both : null;
    const both = draw_both(shown, old, room);
    last.current = { filter, arranged, both };
    return both;
  }, [signature, filter, arranged]);
  const picture = both[way ?? both.best];
  useEffect(() => {
    if (!frame.current) return;
    const watch = new ResizeObserver((entries) => set_room(Math.round(entries[0]!.contentRect.width)));
    watch.observe(frame.current);
    return () => watch.disconnect();
  }, [picture.placed.size > 0]);
  useEffect(() => {
    if (zoom === "fit") whole.current?.scrollIntoView({ block: "start" });
  }, [zoom]);
  if (!figures) return null;
  if (!picture.placed.size) return <NothingToDraw filter={filter} />;

  const mismatched = new Set(figures.mismatches.map((m) => m.topic));
  const problem_at = (topic: TopicRow) => topic.lost_in_interval > 0 || topic.missed_in_interval > 0 || mismatched.has(topic.topic);
  const touched = near === null ? null : neighbours(near, picture);
  const pad = 12;
  const [w, h] = [picture.width + 2 * pad, picture.height + 2 * pad];
  const scale = typeof zoom === "number" ? zoom : null;
  const step = (by: number) => {
    const svg = frame.current?.querySelector("svg");
    const now = scale ?? (svg ? Math.min(svg.clientWidth / w, svg.clientHeight / h) : 1);
    set_zoom(Math.min(3, Math.max(0.2, now * by)));
  };
  const faded = (id: string) => (touched && !touched.has(id) ? " faded" : "");
  return (
    <div class="graph" ref={whole}>
      <div class="graph-head">
        <ul class="legend" aria-label="Legend">
          <li><i class="key node" /> node</li>
          <li><i class="key topic" /> topic</li>
          <li><i class="key urgent" /> urgent topic</li>
          <li><i class="key bad" /> node gone, or messages lost</li>
        </ul>
        <span class="segments" role="group" aria-label="Layout">
          <button onClick={() => (arrange(arranged + 1), set_way(null))} title="Lay out the graph again">Arrange</button>
          <button onClick={() => set_way(picture.way === "right" ? "down" : "right")}>{picture.way === "right" ? "Downwards" : "To the right"}</button>
          <button onClick={() => step(1 / 1.25)} aria-label="Smaller">−</button>
          <button onClick={() => step(1.25)} aria-label="Larger">+</button>
          <button aria-pressed={zoom === "fit"} onClick={() => set_zoom(zoom === "fit" ? "read" : "fit")} title="Show the whole graph">Fit</button>
        </span>
      </div>
      <div class={`graph-frame ${scale === null ? zoom : ""}`} ref={frame} tabIndex={0} role="region" aria-label="Graph of nodes and topics" {...drag}>
        <svg
          viewBox={`${picture.left - pad} ${picture.top - pad} ${w} ${h}`}
          width={scale === null ? undefined : w * scale}
          height={scale === null ? undefined : h * scale}
          style={scale !== null ? undefined : zoom === "fit" ? { maxWidth: `${w}px` } : { maxWidth: `${w}px`, minWidth: `${w * MIN_SCALE}px` }}
          onMouseLeave={() => set_near(null)}
        >
          <defs>
            <marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">
              <path d="M0 1L7 4L0 7z" class="arrow" />
            </marker>
          </defs>
          {picture.routes.map((route) => (
            <path
              key={`${route.from}>${route.to}`}
              class={`edge${touched ? (touched.has(`${route.from}>${route.to}`) ? " lit" : " faded") : ""}`}
              d={path(route.points, picture.way)}
              marker-end="url(#arrow)"
            />
          ))}
          {shown.topics.map((topic) => (
            <TopicBox key={topic.topic} topic={topic} picture={picture} bad={problem_at(topic)} faded={faded(`t${topic.topic}`)} near={set_near} />
          ))}
          {shown.nodes.map((node) => (
            <NodeBox key={node.node} node={node} picture={picture} faded={faded(`n${node.node}`)} near={set_near} />
          ))}
        </svg>
      </div>
    </div>
  );
}

/** To the right, unless text would then be too small to read, and larger in the other direction. */
function best_direction(right: Layout, down: Layout, room: number): Direction {
  const scale = (picture: Layout) => Math.min(1, (room || innerWidth - 240) / (picture.width + 24));
  return scale(right) < 0.85 && scale(down) > scale(right) ? "down" : "right";
}

function NothingToDraw({ filter }: { filter: string }) {
  if (filter) return <p class="empty">No node and no topic has “{filter}” in its name.</p>;
  return (
    <div class="empty">
      <p>No nodes in this domain yet.</p>
      <p>Start a node, or try <code>rnet topic pub /hello --text hello --rate 10</code> in a terminal.</p>
    </div>
  );
}

interface Shown {
  nodes: KnownNode[];
  topics: TopicRow[];
  edges: [string, string][];
}

function pick(figures: Figures | null, nodes: KnownNode[], filter: string): Shown {
  if (!figures) return { nodes: [], topics: [], edges: [] };
  const edges: [string, string][] = [];
  const has = (name: string) => name.toLowerCase().includes(filter);
  for (const node of nodes) {
    for (const topic of node.publishes) if (has(topic) || has(node.node)) edges.push([`n${node.node}`, `t${topic}`]);
    for (const topic of node.subscribes) if (has(topic) || has(node.node)) edges.push([`t${topic}`, `n${node.node}`]);
  }
  edges.sort((a, b) => (a.join() < b.join() ? -1 : 1));
  const ends = new Set(edges.flat());
  return {
    nodes: nodes.filter((node) => has(node.node) || ends.has(`n${node.node}`)),
    topics: figures.topics.filter((topic) => has(topic.topic) || ends.has(`t${topic.topic}`)),
    edges,
  };
}

/** Both layouts; boxes of the old ones keep their places. */
function draw_both(shown: Shown, old: Pictures | null, room: number): Pictures {
  const vertices = boxes_of(shown);
  const more = (way: Direction) => old && extend(old[way].places, vertices, shown.edges, old[way].routes, way);
  const [right, down] = [more("right"), more("down")];
  if (old && right && down) {
    const known = (way: Direction, layout: Layout) => {
      const places = new Map([...old[way].places, ...layout.placed]);
      // Nodes with generated names never return: their places would accumulate.
      return { ...layout, places: places.size > MAX_PLACES * vertices.length ? layout.placed : places };
    };
    return { right: known("right", right), down: known("down", down), best: old.best };
  }
  const fresh = (way: Direction) => {
    const drawn = layout(vertices, shown.edges, way);
    return { ...drawn, places: drawn.placed };
  };
  const both = { right: fresh("right"), down: fresh("down") };
  return { ...both, best: best_direction(both.right, both.down, room) };
}

function boxes_of({ nodes, topics }: Shown): Vertex[] {
  const width = (name: string, least: number) => Math.max(least, Math.min(name.length, MAX_NAME_CHARS) * CHAR + 26);
  return [
    ...nodes.map((n) => ({ id: `n${n.node}`, width: width(n.node, 124), height: NODE_HEIGHT })),
    ...topics.map((t) => ({ id: `t${t.topic}`, width: width(t.topic, 92), height: TOPIC_HEIGHT })),
  ];
}

function neighbours(id: string, picture: Picture): Set<string> {
  const all = new Set([id]);
  for (const { from, to } of picture.routes) {
    if (from !== id && to !== id) continue;
    all.add(from).add(to).add(`${from}>${to}`);
  }
  return all;
}

function short(name: string): string {
  return name.length <= MAX_NAME_CHARS ? name : `…${name.slice(-(MAX_NAME_CHARS - 1))}`;
}

interface BoxProps {
  picture: Picture;
  faded: string;
  near(id: string | null): void;
}

function NodeBox({ node, picture, faded, near }: BoxProps & { node: KnownNode }) {
  const id = `n${node.node}`;
  const box = picture.placed.get(id);
  if (!box) return null;
  const state = node.gone ? "gone" : node.state === "stopped" ? "stopped" : "";
  const says = node.gone
    ? `gone since ${units.clock(node.gone.since_s)}`
    : node.state === "stopped"
      ? "stopped"
      : node.cpu === null
        ? `on ${node.host}`
        : `${units.percent(node.cpu)} CPU · ${units.bytes(node.rss_bytes)}`;
  return (
    <a href={href("nodes", node.node)} class={`box node ${state}${faded}`} aria-description="node" onMouseEnter={() => near(id)} onFocus={() => near(id)} onBlur={() => near(null)} data-node={node.node}>
      {node.node.length > MAX_NAME_CHARS && <title>{node.node}</title>}
      <rect x={box.x} y={box.y} width={box.width} height={box.height} rx="5" />
      <text class="name" x={box.x + box.width / 2} y={box.y + 17}>{short(node.node)}</text>
      <text class="says" x={box.x + box.width / 2} y={box.y + 31}>{says}</text>
    </a>
  );
}

function TopicBox({ topic, picture, bad, faded, near }: BoxProps & { topic: TopicRow; bad: boolean }) {
  const id = `t${topic.topic}`;
  const box = picture.placed.get(id);
  if (!box) return null;
  const lost = topic.lost_in_interval > 0 ? ` · ${units.count(topic.lost_in_interval)} lost` : "";
  const says = `${units.rate(topic.rate_hz)}${lost}`;
  return (
    <a href={href("topics", topic.topic)} class={`box topic ${topic.lane === "urgent" ? "urgent" : ""} ${bad ? "bad" : ""}${faded}`} aria-description="topic" onMouseEnter={() => near(id)} onFocus={() => near(id)} onBlur={() => near(null)}>
      {topic.topic.length > MAX_NAME_CHARS && <title>{topic.topic}</title>}
      <rect x={box.x} y={box.y} width={box.width} height={box.height} rx={box.height / 2} />
      <text class="name" x={box.x + box.width / 2} y={box.y + 15}>{short(topic.topic)}</text>
      <text class="says" x={box.x + box.width / 2} y={box.y + 27}>{says}</text>
    </a>
  );
}

/** Pans the content of a frame with the mouse; touch scrolls natively. */
function useDrag(frame: { current: HTMLDivElement | null }) {
  const from = useRef<{ x: number; y: number; left: number; top: number } | null>(null);
  return {
    onPointerDown(event: PointerEvent) {
      if (event.pointerType !== "mouse" || event.button !== 0 || !frame.current) return;
      from.current = { x: event.clientX, y: event.clientY, left: frame.current.scrollLeft, top: frame.current.scrollTop };
    },
    onPointerMove(event: PointerEvent) {
      if (!from.current || !frame.current) return;
      frame.current.scrollLeft = from.current.left - (event.clientX - from.current.x);
      frame.current.scrollTop = from.current.top - (event.clientY - from.current.y);
    },
    onPointerUp: () => (from.current = null),
    onPointerLeave: () => (from.current = null),
    onDragStart: (event: DragEvent) => event.preventDefault(),
  };
}
