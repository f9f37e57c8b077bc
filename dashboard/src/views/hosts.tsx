import { useDomain, useHost } from "../domain";
import { Head, State, TopicLink } from "../parts/common";
import { Table, type Column } from "../parts/table";
import * as units from "../units";
import type { HostRow } from "../wire/types";

const COLUMNS: Column<HostRow>[] = [
  { title: "Host", by: (h) => h.host, cell: (h) => h.host },
  { title: "Link", by: (h) => h.state, cell: (h) => <State word={h.state} /> },
  { title: "Round trip", figure: true, by: (h) => h.round_trip_s, cell: (h) => units.duration_s(h.round_trip_s) },
  { title: "Clock", figure: true, hint: "Offset of its monotonic clock from this host, with uncertainty", by: (h) => h.clock_offset_s, cell: (h) => (h.clock_offset_s === null ? "–" : `${units.duration_s(h.clock_offset_s)} ± ${units.duration_s(h.clock_offset_uncertainty_s)}`), opt: 2 },
  { title: "In", figure: true, by: (h) => h.in_bytes_per_s, cell: (h) => units.bandwidth(h.in_bytes_per_s) },
  { title: "Out", figure: true, by: (h) => h.out_bytes_per_s, cell: (h) => units.bandwidth(h.out_bytes_per_s) },
  { title: "Lost", figure: true, by: (h) => h.lost, cell: (h) => <span class={h.lost ? "warn" : "dim"}>{units.count(h.lost)}</span> },
  { title: "Held back", cell: (h) => (h.held_back.length ? h.held_back.map((t, i) => <span key={t}>{i > 0 && ", "}<TopicLink name={t} /></span>) : <span class="dim">nothing</span>), hint: "Topics waiting for network capacity or for the receiver" },
];

export function Hosts() {
  const { figures } = useDomain();
  const host = useHost();
  if (!figures) return null;
  return (
    <>
      <Head title="Hosts" note={`as seen from ${host}`} />
      {figures.insecure && <p class="warn" role="note">{figures.insecure}</p>}
      <Table
        label="Other hosts"
        name="hosts"
        columns={COLUMNS}
        rows={figures.hosts}
        id={(h) => h.host}
        row_class={(h) => (h.state === "lost" || h.state === "refused" ? "bad-row" : undefined)}
        empty={<><p>No other hosts: the link between hosts is off, or finds no other host.</p><p>Set <code>mode = "lan"</code> and <code>insecure = true</code> under <code>[network]</code> in <code>robot.toml</code> on both hosts; <code>rnet doctor</code> shows why two hosts do not connect.</p></>}
      />
    </>
  );
}
