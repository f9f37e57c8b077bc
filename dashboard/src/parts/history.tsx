// The last minutes of a topic: rate, latency, losses, and the latency distribution.

import { useEffect, useRef } from "preact/hooks";
import { Chart, type Columns, type Line } from "../draw/chart";
import * as units from "../units";
import { wire } from "../wire/socket";
import type { History } from "../wire/types";
import { useSub } from "../wire/use";
import { Histogram } from "./histogram";
import { Panel, Waiting } from "./common";

const SHOWN_S = 120;
const MAX_POINTS = 1200;
/** Number of intervals in the histogram: the last minute at two per second. */
const MAX_HISTOGRAMS = 120;

interface HistoryBuffer extends History {
  hists: [number, number, number][][];
}

/** The server adds a point at least every 5 s while a page is connected; a longer interval is a gap. */
const GAP_S = 6;

const COLUMNS = ["t_s", "rate_hz", "bytes_per_s", "p50_ns", "p99_ns", "max_ns", "lost", "missed", "skipped"] as const;

function empty(): HistoryBuffer {
  return { t_s: [], rate_hz: [], bytes_per_s: [], p50_ns: [], p99_ns: [], max_ns: [], lost: [], missed: [], skipped: [], hists: [] };
}

function add(old: HistoryBuffer | null, data: History): HistoryBuffer {
  const kept = old ?? empty();
  data.t_s.forEach((t, i) => {
    const last = kept.t_s[kept.t_s.length - 1];
    const is_gap = last !== undefined && t - last > GAP_S;
    for (const name of COLUMNS) {
      const column = kept[name] as (number | null)[];
      if (is_gap) column.push(name === "t_s" ? last + 1e-3 : null);
      column.push(data[name][i]!);
    }
  });
  const cut = kept.t_s.length - MAX_POINTS;
  if (cut > 0) for (const name of COLUMNS) kept[name].splice(0, cut);
  if (data.hist) kept.hists.push(data.hist);
  if (kept.hists.length > MAX_HISTOGRAMS) kept.hists.shift();
  return kept;
}

export function TopicHistory({ topic }: { topic: string }) {
  const { data, error } = useSub<HistoryBuffer>({ what: "history", topic }, add);
  if (!data) return <Panel title="History"><Waiting error={error} what="the history" /></Panel>;
  const x = data.t_s;
  return (
    <div class="history">
      <Lines title="Rate" x={x} columns={[data.rate_hz]} lines={[{ label: "rate", colour: "plot-1", fill: true }]} format={units.rate} />
      <Lines title="Latency" x={x} columns={[data.p50_ns, data.p99_ns, data.max_ns]} lines={[{ label: "p50", colour: "plot-3" }, { label: "p99", colour: "plot-1" }, { label: "max", colour: "plot-2" }]} format={units.duration_ns} />
      <Lines title="Lost, missed, skipped" x={x} columns={[data.lost, data.missed, data.skipped]} lines={[{ label: "lost", colour: "bad", bars: true }, { label: "deadlines missed", colour: "plot-4" }, { label: "skipped by setting", colour: "plot-6" }]} format={units.count} whole />
      <Panel title="Latency distribution" tools={<span class="dim">the last minute</span>} class="half">
        <Histogram hists={data.hists} />
      </Panel>
    </div>
  );
}

function Lines({ title, x, columns, lines, format, whole }: { title: string; x: number[]; columns: (number | null)[][]; lines: Line[]; format(value: number): string; whole?: boolean }) {
  const place = useRef<HTMLDivElement>(null);
  const chart = useRef<Chart | null>(null);
  const labels = useRef<HTMLUListElement>(null);
  const latest = useRef<Columns>([]);
  latest.current = [x, ...columns];
  const show = (index: number | null) => {
    const at = index ?? x.length - 1;
    lines.forEach((_line, i) => {
      const value = latest.current[i + 1]?.[at];
      const cell = labels.current?.querySelectorAll("b")[i];
      if (cell) cell.textContent = value == null ? "–" : format(value);
    });
  };
  const shown = useRef(show);
  shown.current = show;
  const over = useRef<number | null>(null);
  useEffect(() => {
    chart.current = new Chart(place.current!, {
      lines,
      height: 150,
      format,
      from_zero: true,
      whole,
      sync: "history",
      window: () => [wire.now_s() - SHOWN_S, wire.now_s()],
      at(index) {
        over.current = index;
        shown.current(index);
      },
    });
    return () => chart.current?.destroy();
  }, []);
  useEffect(() => {
    if (wire.link.is === "open") chart.current?.set(latest.current);
    show(over.current);
  });
  return (
    <section class="panel half" aria-label={title}>
      <div class="panel-head">
        <h3>{title}</h3>
        <ul class="plot-legend" ref={labels}>
          {lines.map((line) => (
            <li key={line.label}><i class={`swatch ${line.colour}`} /><span>{line.label}</span><b class="value">–</b></li>
          ))}
        </ul>
      </div>
      <div class="chart" ref={place} />
    </section>
  );
}
