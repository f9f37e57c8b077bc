// A chart of plotted fields, with their current values, or those at the mouse.

import { useEffect, useReducer, useRef } from "preact/hooks";
import { Chart, type Columns } from "../draw/chart";
import { charts, subscribe_series, id_of, merged, set_window, time_window, toggle, usePlots, type Buffer, type Series } from "../plots";
import { href } from "../router";
import * as units from "../units";
import { wire } from "../wire/socket";
import { Icon } from "./icons";

const DRAW_MS = 200;
const WINDOWS: [number, string][] = [[10, "10 s"], [30, "30 s"], [60, "1 min"], [300, "5 min"]];

export function PlotCharts({ topic }: { topic?: string }) {
  usePlots();
  const all = charts(topic);
  return (
    <>
      {all.map(({ key, series }) => (
        <PlotChart key={key} series={series} linked={topic === undefined} />
      ))}
    </>
  );
}

export function WindowChoice() {
  usePlots();
  return (
    <span class="segments" role="group" aria-label="Time shown">
      {WINDOWS.map(([s, label]) => (
        <button key={s} aria-pressed={time_window() === s} onClick={() => set_window(s)}>{label}</button>
      ))}
    </span>
  );
}

function PlotChart({ series, linked }: { series: Series[]; linked: boolean }) {
  const place = useRef<HTMLDivElement>(null);
  const buffers = useRef<Buffer[]>([]);
  const at = useRef<number | null>(null);
  const shown = useRef<Columns>([[]]);
  const [, draw] = useReducer((n: number) => n + 1, 0);
  const ids = series.map(id_of).join("\n");

  useEffect(() => {
    const holds = series.map(subscribe_series);
    buffers.current = holds.map(({ buffer }) => buffer);
    const lines = series.map((one, i) => ({ label: one.field, colour: `plot-${(i % 6) + 1}`, band: true, steps: one.topic === undefined }));
    const window = (): [number, number] => [wire.now_s() - time_window(), wire.now_s()];
    const chart = new Chart(place.current!, { lines, height: 190, format: units.number, window, sync: "time", at: (index) => (at.current = index) });
    let drawn = 0;
    const timer = setInterval(() => {
      // A line that stops while no data arrives would look like a constant value.
      if (wire.link.is !== "open") return;
      shown.current = merged(buffers.current, wire.now_s() - time_window());
      chart.set(shown.current);
      if (drawn++ % 2 === 0) draw(undefined);
    }, DRAW_MS);
    return () => {
      clearInterval(timer);
      chart.destroy();
      for (const { release } of holds) release();
    };
  }, [ids]);

  const first = series[0]!;
  const value = (i: number) => {
    const buffer = buffers.current[i];
    const point = at.current === null ? null : shown.current[3 + 3 * i]?.[at.current];
    const now = point ?? buffer?.last[buffer.last.length - 1];
    if (now == null || Number.isNaN(now)) return "–";
    return buffer?.unit ? `${units.brief(now)} ${buffer.unit}` : units.brief(now);
  };
  const notes = series.map((_one, i) => note(buffers.current[i])).filter((text) => text !== null);
  return (
    <section class="panel plot" aria-label={`Plot of ${series.map((one) => one.field || one.state).join(", ")}`} data-points={shown.current[0]!.length}>
      <div class="panel-head">
        <h3>{linked && first.topic ? <a href={href("topics", first.topic)}>{first.topic}</a> : (first.topic ?? first.state)}</h3>
        <ul class="plot-legend">
          {series.map((one, i) => (
            <li key={id_of(one)}>
              <i class={`swatch plot-${(i % 6) + 1}`} />
              <span>{one.field || "value"}</span>
              <b class="value">{value(i)}</b>
              <button class="quiet small" aria-label={`Remove ${one.field || one.state} from the plot`} onClick={() => toggle(one)}><Icon name="close" /></button>
            </li>
          ))}
        </ul>
      </div>
      <div class="chart" ref={place} />
      {notes.length > 0 && <p class="note">{notes.join("; ")}</p>}
    </section>
  );
}

function note(buffer: Buffer | undefined): string | null {
  if (!buffer) return null;
  if (buffer.why) return buffer.why;
  if (buffer.lost > 0) return `${units.plural(buffer.lost, "message")} arrived too fast to be plotted`;
  return null;
}
