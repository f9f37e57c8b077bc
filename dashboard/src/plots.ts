// The plotted series: fields of topics and keys of the state, selected by a click. The selection survives a
// reload of the page, and received data survives a change of the view.

import { useEffect, useReducer } from "preact/hooks";
import { is_gap } from "./draw/points";
import { wire } from "./wire/socket";
import type { PlotData } from "./wire/types";

export interface Series {
  topic?: string;
  state?: string;
  field: string;
}

export interface Buffer {
  t: number[];
  min: number[];
  max: number[];
  last: number[];
  unit: string | null;
  /** The newest intervals between points, in s, to detect gaps. */
  steps: number[];
  /** Why there are no points. */
  why: string | null;
  missing: number;
  lost: number;
}

export const LONGEST_S = 300;
const POINTS = 500;
const MAX_SERIES = 24;

/** The data of a series, and the users of its subscription. */
interface PlotSubscription {
  series: Series;
  buffer: Buffer;
  bucket_ms: number;
  off: (() => void) | null;
  users: number;
}

const KEY = "rnet.plots";
const subscriptions = new Map<string, PlotSubscription>();
const listeners = new Set<() => void>();
let chosen: Series[] = load_chosen();
let window_s = Number(sessionStorage.getItem("rnet.window")) || 10;

export function id_of(series: Series): string {
  return `${series.topic ?? `state ${series.state}`} ${series.field}`;
}

/** Fields of one parent in a message share a chart: `linear_acceleration.x`, `.y`, `.z`. */
export function group_of(series: Series): string {
  const parent = series.field.replace(/(\.[^.[\]]+|\[\d+\]|^[^.[\]]+)$/, "");
  return `${series.topic ?? `state ${series.state}`} ${parent}`;
}

export function is_plotted(series: Series): boolean {
  return chosen.some((one) => id_of(one) === id_of(series));
}

export function toggle(series: Series): void {
  const id = id_of(series);
  if (is_plotted(series)) chosen = chosen.filter((one) => id_of(one) !== id);
  else chosen = [...chosen, series].slice(-MAX_SERIES);
  save_chosen();
}

export function clear(): void {
  chosen = [];
  save_chosen();
}

export function set_window(s: number): void {
  window_s = s;
  sessionStorage.setItem("rnet.window", String(s));
  for (const one of subscriptions.values()) if (one.off && one.bucket_ms !== bucket_ms()) resubscribe(one);
  notify_listeners();
}

export function time_window(): number {
  return window_s;
}

/** The charts: groups of series, of one topic if it is given. */
export function charts(topic?: string): { key: string; series: Series[] }[] {
  const groups = new Map<string, Series[]>();
  for (const one of chosen) {
    if (topic !== undefined && one.topic !== topic) continue;
    const key = group_of(one);
    groups.set(key, [...(groups.get(key) ?? []), one]);
  }
  return [...groups].map(([key, series]) => ({ key, series }));
}

export function usePlots(): void {
  const [, draw] = useReducer((n: number) => n + 1, 0);
  useEffect(() => {
    const listener = () => draw(undefined);
    listeners.add(listener);
    return () => void listeners.delete(listener);
  }, []);
}

/** Keeps the subscription of a series until the returned function is called. */
export function subscribe_series(series: Series): { buffer: Buffer; release(): void } {
  const id = id_of(series);
  let one = subscriptions.get(id);
  if (!one) {
    one = { series, buffer: empty(), bucket_ms: 0, off: null, users: 0 };
    subscriptions.set(id, one);
  }
  one.users += 1;
  if (!one.off) resubscribe(one);
  const release = () => {
    one.users -= 1;
    if (one.users > 0) return;
    one.off?.();
    one.off = null;
    if (!is_plotted(series)) subscriptions.delete(id);
  };
  return { buffer: one.buffer, release };
}

function bucket_ms(): number {
  return Math.max(20, Math.round((window_s * 1000) / POINTS));
}

function resubscribe(one: PlotSubscription): void {
  one.off?.();
  one.bucket_ms = bucket_ms();
  const { topic, state, field } = one.series;
  const source = topic !== undefined ? { topic } : { state };
  const { buffer } = one;
  buffer.steps.length = 0;
  one.off = wire.subscribe(
    { what: "plot", ...source, field, bucket_ms: one.bucket_ms },
    {
      // A state value holds until it is set again.
      data: (data: PlotData) => append(buffer, data, topic !== undefined),
      error: (error) => (buffer.why = error?.message ?? null),
      // A gap in the line, for unknown values.
      restart: () => gap(buffer),
    },
  );
}

/** A robot clock that is set back by less is tolerated; the server sends late values with new ones. */
const SET_BACK_S = 2;

function append(buffer: Buffer, data: PlotData, has_gaps: boolean): void {
  let newest = buffer.t[buffer.t.length - 1] ?? -Infinity;
  // The robot's clock was set back: drawn points are now in the future, and would hide new ones.
  const first = data.t_s[0] ?? Infinity;
  if (first < newest - SET_BACK_S) {
    for (const column of [buffer.t, buffer.min, buffer.max, buffer.last]) column.length = 0;
    newest = -Infinity;
  }
  for (let i = 0; i < data.t_s.length; i++) {
    // uPlot needs increasing times; a bucket that is repeated after a change of the bucket length is the same
    // data.
    const t = data.t_s[i]!;
    if (t <= newest) continue;
    if (has_gaps && is_gap(buffer.steps, t - newest)) gap(buffer);
    newest = t;
    buffer.t.push(t);
    buffer.min.push(data.min[i]!);
    buffer.max.push(data.max[i]!);
    buffer.last.push(data.last[i]!);
  }
  buffer.missing += data.missing ?? 0;
  buffer.lost += data.lost ?? 0;
  buffer.why = data.why ?? null;
  buffer.unit = data.unit ?? buffer.unit;
  const oldest = wire.now_s() - LONGEST_S;
  let cut = 0;
  while (cut < buffer.t.length && buffer.t[cut]! < oldest) cut++;
  // Trims occasionally, not for each point.
  if (cut > 1000) for (const column of [buffer.t, buffer.min, buffer.max, buffer.last]) column.splice(0, cut);
}

/** Ends the line; the next point begins a new one. */
function gap(buffer: Buffer): void {
  if (!buffer.t.length) return;
  buffer.t.push(buffer.t[buffer.t.length - 1]! + 1e-3);
  for (const column of [buffer.min, buffer.max, buffer.last]) column.push(NaN);
}

function empty(): Buffer {
  return { t: [], min: [], max: [], last: [], unit: null, steps: [], why: null, missing: 0, lost: 0 };
}

function load_chosen(): Series[] {
  try {
    const all = JSON.parse(sessionStorage.getItem(KEY) ?? "[]");
    return Array.isArray(all) ? all.filter((one) => typeof one?.field === "string").slice(0, MAX_SERIES) : [];
  } catch {
    return [];
  }
}

function save_chosen(): void {
  sessionStorage.setItem(KEY, JSON.stringify(chosen));
  notify_listeners();
}

function notify_listeners(): void {
  for (const listener of listeners) listener();
}

/**
 * The points of several series since `from_s`, on one time axis: x, then minimum, maximum and last of each.
 */
export function merged(buffers: Buffer[], from_s: number): (number | null)[][] {
  const starts = buffers.map((buffer) => Math.max(0, first_at(buffer.t, from_s) - 1));
  const columns: (number | null)[][] = [[], ...buffers.flatMap(() => [[], [], []] as (number | null)[][])];
  const at = [...starts];
  for (;;) {
    let t = Infinity;
    buffers.forEach((buffer, i) => (t = Math.min(t, buffer.t[at[i]!] ?? Infinity)));
    if (t === Infinity) return columns;
    columns[0]!.push(t);
    buffers.forEach((buffer, i) => {
      const here = buffer.t[at[i]!] === t;
      const put = (column: number, values: number[]) => columns[1 + 3 * i + column]!.push(here ? known(values[at[i]!]!) : undefined!);
      put(0, buffer.min);
      put(1, buffer.max);
      put(2, buffer.last);
      if (here) at[i]! += 1;
    });
  }
}

/** uPlot draws a gap at `null`, and ignores `undefined`. */
function known(value: number): number | null {
  return value === null || Number.isNaN(value) ? null : value;
}

function first_at(times: number[], from: number): number {
  let [low, high] = [0, times.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (times[middle]! < from) low = middle + 1;
    else high = middle;
  }
  return low;
}
