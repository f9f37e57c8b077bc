import { useState } from "preact/hooks";
import { useDomain, type KnownNode } from "../domain";
import { Filter, Head, NodeLink, Panel, Stat, State, TopicLink } from "../parts/common";
import { Table, type Column } from "../parts/table";
import { href } from "../router";
import * as units from "../units";

const COLUMNS: Column<KnownNode>[] = [
  { title: "Node", by: (n) => n.node, cell: (n) => <NodeLink name={n.node} /> },
  { title: "State", by: (n) => n.state, cell: (n) => <><State word={n.state === "-" ? "elsewhere" : n.state} />{n.gone && <span class="dim"> since {units.clock(n.gone.since_s)}</span>}</> },
  { title: "Host", by: (n) => n.host, cell: (n) => n.host, opt: 1 },
  { title: "Process", figure: true, by: (n) => n.pid, cell: (n) => n.pid ?? "–", opt: 1 },
  { title: "CPU", figure: true, hint: "Percent of one core, of the whole process; nodes of one process share it", by: (n) => n.cpu, cell: (n) => units.percent(n.cpu) },
  { title: "Memory", figure: true, hint: "In RAM, shared pages included", by: (n) => n.rss_bytes, cell: (n) => units.bytes(n.rss_bytes) },
  { title: "Runs for", figure: true, by: (n) => n.uptime_s, cell: (n) => units.span(n.uptime_s), opt: 2 },
  { title: "Restarts", figure: true, hint: "By rnet launch", by: (n) => n.restarts, cell: (n) => n.restarts ?? "–", opt: 1 },
  { title: "Sends", figure: true, by: (n) => n.sent_hz, cell: (n) => units.rate(n.sent_hz), opt: 2 },
  { title: "Receives", figure: true, by: (n) => n.received_hz, cell: (n) => units.rate(n.received_hz), opt: 2 },
];

export function Nodes() {
  const { figures, nodes } = useDomain();
  const [filter, set_filter] = useState("");
  if (!figures) return null;
  const word = filter.toLowerCase();
  const rows = nodes.filter((n) => n.node.toLowerCase().includes(word) || n.host.toLowerCase().includes(word));
  const gone = nodes.filter((n) => n.gone).length;
  return (
    <>
      <Head title="Nodes" note={<>{units.count(figures.nodes.length)}{gone > 0 && <span class="bad">, {units.count(gone)} gone</span>}</>}>
        <Filter value={filter} set={set_filter} label="Filter by name or host" />
      </Head>
      <Table
        label="Nodes"
        name="nodes"
        columns={COLUMNS}
        rows={rows}
        id={(n) => n.node}
        row_class={(n) => (n.gone ? "bad-row gone" : n.state === "stopped" ? "warn-row" : undefined)}
        empty={filter ? <p>No node has “{filter}” in its name.</p> : <p>No nodes yet. A program with <code>rnet.Node("name")</code> appears here.</p>}
      />
    </>
  );
}

export function NodePage({ name }: { name: string }) {
  const { figures, nodes } = useDomain();
  if (!figures) return null;
  const node = nodes.find((n) => n.node === name);
  if (!node) {
    return (
      <>
        <Head title={name} />
        <p class="empty">Node {name} is not in this domain now. <a href={href("nodes")}>All nodes</a></p>
      </>
    );
  }
  const row = (topic: string) => figures.topics.find((t) => t.topic === topic);
  const rates = (topic: string, side: "publishers" | "subscribers") =>
    row(topic)?.[side].filter((end) => end.node === name).reduce((sum, end) => sum + end.rate_hz, 0);
  const list = (topics: string[], side: "publishers" | "subscribers", none: string) =>
    topics.length ? (
      <div class="wide" tabIndex={0} role="region" aria-label={side}><table class="narrow">
        <thead><tr><th scope="col">Topic</th><th scope="col" class="figure">Rate</th><th scope="col">{side === "publishers" ? "To" : "From"}</th></tr></thead>
        <tbody>
          {topics.map((topic) => (
            <tr key={topic}>
              <th scope="row"><TopicLink name={topic} /></th>
              <td class="figure">{units.rate(rates(topic, side))}</td>
              <td>{others(row(topic)?.[side === "publishers" ? "subscribers" : "publishers"].map((end) => end.node) ?? [])}</td>
            </tr>
          ))}
        </tbody>
      </table></div>
    ) : (
      <p class="empty dim">{none}</p>
    );
  return (
    <>
      <Head title={name} note={node.host}>
        <a class="button" href={href("logs", name)}>Logs</a>
        <a class="button" href={href("params", name)}>Parameters</a>
      </Head>
      {node.gone && <p class="error" role="alert">This node has been gone since {units.clock(node.gone.since_s)}. Its last known state is shown.</p>}
      <div class="stats">
        <Stat name="State" value={<State word={node.state === "-" ? "elsewhere" : node.state} />} note={node.pid ? `process ${node.pid}` : undefined} />
        <Stat name="CPU" value={units.percent(node.cpu)} note="of one core" />
        <Stat name="Memory" value={units.bytes(node.rss_bytes)} note="in RAM" />
        <Stat name="Runs for" value={units.span(node.uptime_s)} note={node.restarts === null ? "not launched" : units.plural(node.restarts, "restart")} />
        <Stat name="Sends" value={units.rate(node.sent_hz)} />
        <Stat name="Receives" value={units.rate(node.received_hz)} />
      </div>
      <div class="columns">
        <Panel title="Publishes">{list(node.publishes, "publishers", "No topics.")}</Panel>
        <Panel title="Subscribes">{list(node.subscribes, "subscribers", "No topics.")}</Panel>
      </div>
    </>
  );
}

function others(names: string[]) {
  const all = [...new Set(names)];
  if (!all.length) return <span class="dim">none</span>;
  return all.map((name, i) => <span key={name}>{i > 0 && ", "}<NodeLink name={name} /></span>);
}
