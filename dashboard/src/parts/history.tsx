// A topic over the last minutes: rate, latency, losses, and how its latencies are spread.

import { useEffect, useRef } from "preact/hooks";
import { Chart, type Columns, type Line } from "../draw/chart";
import * as units from "../units";
import { wire } from "../wire/socket";
import type { History } from "../wire/types";
import { useSub } from "../wire/use";
import { Histogram } from "./histogram";
import { Panel, Waiting } from "./bits";

const SHOWN_S = 120;
const KEPT = 1200;
/** How many intervals the histogram sums up: the last minute at two a second. */
const HIST_KEPT = 120;

interface Kept extends History {
  hists: [number, number, number][][];
}

const COLUMNS = ["t_s", "rate_hz", "bytes_per_s", "p50_ns", "p99_ns", "max_ns", "lost", "missed", "skipped"] as const;

function add(old: Kept | null, data: History): Kept {
  if (!old) return { ...data, hists: data.hist ? [data.hist] : [] };
  for (const name of COLUMNS) {
    const column = old[name] as (number | null)[];
    column.push(...data[name]);
    if (column.length > KEPT) column.splice(0, column.length - KEPT);
  }
  if (data.hist) old.hists.push(data.hist);
  if (old.hists.length > HIST_KEPT) old.hists.shift();
  return old;
}

export function TopicHistory({ topic }: { topic: string }) {
  const { data, error } = useSub<Kept>({ what: "history", topic }, add);
  if (!data) return <Panel title="History"><Waiting error={error} what="the history" /></Panel>;
  const x = data.t_s;
  return (
    <div class="history">
      <Lines title="Rate" x={x} columns={[data.rate_hz]} lines={[{ label: "rate", colour: "plot-1", fill: true }]} format={units.rate} />
      <Lines title="Latency" x={x} columns={[data.p50_ns, data.p99_ns, data.max_ns]} lines={[{ label: "p50", colour: "plot-3" }, { label: "p99", colour: "plot-1" }, { label: "max", colour: "plot-2" }]} format={units.duration_ns} />
      <Lines title="Lost, missed, skipped" x={x} columns={[data.lost, data.missed, data.skipped]} lines={[{ label: "lost", colour: "bad", bars: true }, { label: "deadlines missed", colour: "plot-4" }, { label: "skipped by choice", colour: "plot-6" }]} format={units.count} />
      <Panel title="Spread of latencies" tools={<span class="dim">the last minute</span>} class="half">
        <Histogram hists={data.hists} />
      </Panel>
    </div>
  );
}

function Lines({ title, x, columns, lines, format }: { title: string; x: number[]; columns: (number | null)[][]; lines: Line[]; format(value: number): string }) {
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
