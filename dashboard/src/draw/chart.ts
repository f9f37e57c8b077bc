// Line charts over time with uPlot, in the page's colours, at the available width.

import uPlot from "uplot";
import { colour, faint, on_theme } from "../theme";
import { alone, labels } from "./points";

export interface Line {
  label: string;
  /** A colour of the palette. */
  colour: string;
  /** Whether the two preceding columns are its minimum and maximum, which are drawn as a band. */
  band?: boolean;
  /** Fill the area down to zero. */
  fill?: boolean;
  /** Draw steps: a value holds until the next point. */
  steps?: boolean;
  /** Draw bars instead of a line, for counts. */
  bars?: boolean;
}

export interface ChartSpec {
  lines: Line[];
  height: number;
  format(value: number): string;
  /** The range of the x axis, in s since 1970. */
  window(): [number, number];
  /** Whether the y axis begins at zero. */
  from_zero?: boolean;
  /** Values are counts: the y axis has whole numbers only. */
  whole?: boolean;
  /** Reports the index of the point under the mouse, or `null`. */
  at?(index: number | null): void;
  sync?: string;
}

export type Columns = (number | null)[][];

export class Chart {
  private plot: uPlot | null = null;
  private data: Columns = [[]];
  private resize: ResizeObserver;
  private off_theme: () => void;
  private seen = true;
  /** The visible time range has no points: the y axis then has no labels. */
  private is_empty = true;
  private sight: IntersectionObserver;

  constructor(private place: HTMLElement, private spec: ChartSpec) {
    this.resize = new ResizeObserver(() => this.fit());
    this.resize.observe(place);
    this.sight = new IntersectionObserver((entries) => (this.seen = entries[entries.length - 1]!.isIntersecting));
    this.sight.observe(place);
    this.off_theme = on_theme(() => this.build());
    this.build();
  }

  /** Sets the data: x, and the columns of each line. Draws only if visible. */
  set(data: Columns): void {
    this.data = data;
    if (!this.seen || document.hidden || !this.plot) return;
    this.plot.setData(data as uPlot.AlignedData, true);
  }

  destroy(): void {
    this.resize.disconnect();
    this.sight.disconnect();
    this.off_theme();
    this.plot?.destroy();
    this.plot = null;
  }

  private fit(): void {
    const width = Math.floor(this.place.clientWidth);
    if (this.plot && width > 0 && width !== this.plot.width) this.plot.setSize({ width, height: this.spec.height });
  }

  private range(low: number | null, high: number | null, from_zero: boolean): [number, number] {
    this.is_empty = low === null || high === null;
    this.place.classList.toggle("no-data", this.is_empty);
    return room(low, high, from_zero);
  }

  private build(): void {
    this.plot?.destroy();
    const { lines, height, format, window, from_zero, whole, at, sync } = this.spec;
    const series: uPlot.Series[] = [{}];
    const bands: uPlot.Band[] = [];
    for (const line of lines) {
      const stroke = colour(line.colour);
      const paths = line.bars ? uPlot.paths.bars!({ size: [0.8, 24, 2] }) : line.steps ? uPlot.paths.stepped!({ align: 1 }) : undefined;
      if (line.band) {
        series.push({ label: "", points: { show: false }, paths }, { label: "", points: { show: false }, paths });
        bands.push({ series: [series.length - 1, series.length - 2], fill: faint(line.colour, 0.25) });
      }
      series.push({
        label: line.label,
        stroke,
        width: 1.5,
        points: line.bars ? { show: false } : { show: false, size: 4, fill: stroke, filter: alone },
        fill: line.fill || line.bars ? faint(line.colour, line.bars ? 0.8 : 0.12) : undefined,
        paths,
      });
    }
    const axis = { stroke: colour("dim"), grid: { stroke: colour("line"), width: 1 }, ticks: { stroke: colour("line"), width: 1, size: 4 }, font: FONT };
    const options: uPlot.Options = {
      width: Math.max(50, Math.floor(this.place.clientWidth)),
      height,
      series,
      bands,
      legend: { show: false },
      cursor: { points: { size: 6 }, drag: { x: false, y: false }, sync: sync ? { key: sync } : undefined },
      scales: { x: { time: true, range: () => window() }, y: { range: (_u, low, high) => this.range(low, high, !!from_zero) } },
      axes: [
        { ...axis, space: 70, size: 28, values: [[3600, "{HH}:{mm}", null, null, null, null, null, null, 1], [60, "{HH}:{mm}", null, null, null, null, null, null, 1], [1, "{HH}:{mm}:{ss}", null, null, null, null, null, null, 1], [0.001, ":{ss}.{fff}", null, null, null, null, null, null, 1]] },
        { ...axis, values: (_u, splits) => (this.is_empty ? splits.map(() => "") : labels(splits, format)), size: (u, values) => label_room(u, values), space: 28, incrs: whole ? WHOLE : undefined },
      ],
      hooks: { setCursor: [(u) => at?.(u.cursor.idx ?? null)] },
    };
    this.plot = new uPlot(options, this.data as uPlot.AlignedData, this.place);
  }
}

/** 1, 2, 5, 10, … */
const WHOLE = Array.from({ length: 15 }, (_x, i) => [1, 2, 5].map((n) => n * 10 ** i)).flat();

const FONT = "11px Inter, system-ui, sans-serif";

/** Width of the longest label. */
function label_room(_u: uPlot, values: string[] | null): number {
  const longest = Math.max(3, ...(values ?? []).map((value) => value.length));
  return Math.ceil(longest * 6.4) + 14;
}

function room(low: number | null, high: number | null, from_zero: boolean): [number, number] {
  if (low === null || high === null || !Number.isFinite(low) || !Number.isFinite(high)) return [0, 1];
  if (from_zero) return [0, high > 0 ? high * 1.12 : 1];
  if (low === high) {
    const half = Math.abs(low) * 0.1 || 1;
    return [low - half, high + half];
  }
  const edge = (high - low) * 0.08;
  return [low - edge, high + edge];
}
