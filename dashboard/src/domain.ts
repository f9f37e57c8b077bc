// The figures of the domain, which all views use, and recently lost nodes.

import { createContext } from "preact";
import { useContext } from "preact/hooks";
import { wire } from "./wire/socket";
import { useSub } from "./wire/use";
import type { Command, Figures, GoneNode, NodeRow } from "./wire/types";

/**
 * A node that the page has seen. `gone` is `null` while it exists; otherwise it has the time, by the server's
 * clock.
 */
export interface KnownNode extends NodeRow {
  gone: GoneNode | null;
}

export interface Domain {
  figures: Figures | null;
  nodes: KnownNode[];
  commands: Command[] | null;
  commands_error: string | null;
}

export const FIGURES_MS = 400;

interface SeenNodes {
  figures: Figures;
  nodes: KnownNode[];
  rows: Map<string, NodeRow>;
}

/** Current nodes, and nodes lost in the last minute, with their last topics. */
function remember(old: SeenNodes | null, figures: Figures): SeenNodes {
  const rows = old?.rows ?? new Map<string, NodeRow>();
  const here = new Set(figures.nodes.map((row) => row.node));
  for (const row of figures.nodes) rows.set(row.node, row);
  const gone = figures.gone.filter((gone) => !here.has(gone.node));
  const named = new Set(gone.map((gone) => gone.node));
  for (const name of rows.keys()) if (!here.has(name) && !named.has(name)) rows.delete(name);
  const nodes: KnownNode[] = figures.nodes.map((row) => ({ ...row, gone: null }));
  for (const one of gone) nodes.push(gone_node(one, rows.get(one.node)));
  nodes.sort((a, b) => (a.node < b.node ? -1 : 1));
  return { figures, nodes, rows };
}

/** A lost node must be shown within a second, and does not wait for the next tick. */
function has_new_gone_node(old: SeenNodes | null, now: SeenNodes): boolean {
  return now.figures.gone.some(({ node, since_s }) => !old?.figures.gone.some((one) => one.node === node && one.since_s === since_s));
}

function gone_node(gone: GoneNode, row: NodeRow | undefined): KnownNode {
  return {
    node: gone.node,
    host: gone.host,
    pid: null,
    restarts: row?.restarts ?? null,
    publishes: row?.publishes ?? [],
    subscribes: row?.subscribes ?? [],
    state: "gone",
    cpu: null,
    rss_bytes: null,
    uptime_s: null,
    sent_hz: 0,
    received_hz: 0,
    gone,
  };
}

const FIGURES = { op: "sub", what: "figures", interval_ms: FIGURES_MS };
const COMMANDS = { op: "sub", what: "commands" };

/** Only for the root component, which provides the result to all views. */
export function useDomainSource(): Domain {
  const seen = useSub<SeenNodes>(FIGURES, remember, has_new_gone_node);
  const commands = useSub<{ commands: Command[] }>(COMMANDS);
  return {
    figures: seen.data?.figures ?? null,
    nodes: seen.data?.nodes ?? [],
    commands: commands.data?.commands ?? null,
    commands_error: commands.error?.message ?? null,
  };
}

export const DomainContext = createContext<Domain>({ figures: null, nodes: [], commands: null, commands_error: null });

export function useDomain(): Domain {
  return useContext(DomainContext);
}

/** The name of the dashboard's host: from its link, once figures have arrived. */
export function useHost(): string {
  return useDomain().figures?.host ?? wire.hello?.host ?? "this host";
}
