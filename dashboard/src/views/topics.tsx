import { useState } from "preact/hooks";
import { useDomain } from "../domain";
import { Filter, Head, LossCount, TopicLink, total } from "../parts/common";
import { Table, type Column } from "../parts/table";
import * as units from "../units";
import type { TopicEndpoint, TopicRow } from "../wire/types";

const COLUMNS: Column<TopicRow>[] = [
  { title: "Topic", by: (t) => t.topic, cell: (t) => <><TopicLink name={t.topic} />{t.lane === "urgent" && <span class="tag">urgent</span>}</> },
  { title: "Type", by: (t) => t.types.join(), cell: (t) => <span class={t.types.length > 1 ? "bad" : "dim"}>{t.types.join(", ") || "–"}</span>, opt: 2 },
  { title: "Rate", figure: true, by: (t) => t.rate_hz, cell: (t) => units.rate(t.rate_hz) },
  { title: "Bandwidth", figure: true, by: (t) => t.bytes_per_s, cell: (t) => units.bandwidth(t.bytes_per_s) },
  { title: "p50", figure: true, hint: "Median latency from send to receive", by: (t) => t.latency.p50_ns, cell: (t) => units.duration_ns(t.latency.p50_ns), opt: 1 },
  { title: "p99", figure: true, hint: "99th percentile of the latency from send to receive", by: (t) => t.latency.p99_ns, cell: (t) => units.duration_ns(t.latency.p99_ns), opt: 2 },
  { title: "Max", figure: true, hint: "Maximum latency in the last interval", by: (t) => t.latency.max_ns, cell: (t) => units.duration_ns(t.latency.max_ns), opt: 1 },
  { title: "Lost", figure: true, hint: "Total of all subscribers; + shows losses in the last interval", by: (t) => total(t.lost), cell: (t) => <LossCount lost={t.lost} now={t.lost_in_interval} /> },
  { title: "Behind", figure: true, hint: "Messages that the slowest subscriber has not read", by: (t) => t.behind.messages, cell: (t) => (t.behind.messages ? units.count(t.behind.messages) : <span class="dim">0</span>), opt: 1 },
  { title: "Ends", figure: true, hint: "Publishers → subscribers", by: (t) => t.publishers.length + t.subscribers.length, cell: (t) => `${t.publishers.length} → ${t.subscribers.length}`, opt: 2 },
  { title: "QoS", cell: (t) => <Qos topic={t} />, opt: 1 },
];

/** A short text for the quality of service; the topic's page shows all of it. */
function Qos({ topic }: { topic: TopicRow }) {
  const words = (endpoints: TopicEndpoint[]) => [...new Set(endpoints.map((endpoint) => endpoint.qos))].join(" | ");
  const all = `${words(topic.publishers) || "no publisher"} → ${words(topic.subscribers) || "no subscriber"}`;
  return <span class="dim qos" title={all}>{all}</span>;
}

export function Topics() {
  const { figures } = useDomain();
  const [filter, set_filter] = useState("");
  if (!figures) return null;
  const word = filter.toLowerCase();
  const rows = figures.topics.filter((t) => t.topic.toLowerCase().includes(word) || t.types.some((type) => type.toLowerCase().includes(word)));
  return (
    <>
      <Head title="Topics" note={filter ? `${rows.length} of ${figures.topics.length}` : units.count(figures.topics.length)}>
        <Filter value={filter} set={set_filter} label="Filter by name or type" />
      </Head>
      <Table
        label="Topics"
        name="topics"
        columns={COLUMNS}
        rows={rows}
        id={(t) => t.topic}
        row_class={(t) => (t.lost_in_interval || t.missed_in_interval ? "bad-row" : undefined)}
        empty={filter ? <p>No topic has “{filter}” in its name or type.</p> : <p>No topics yet. Try <code>rnet topic pub /hello --text hello --rate 10</code> in a terminal.</p>}
      />
    </>
  );
}
