// A message as a tree. Every number in it is a button that plots it.

import { createContext } from "preact";
import { useContext, useState } from "preact/hooks";
import { is_plotted, toggle, usePlots } from "../plots";
import * as units from "../units";
import type { Json } from "../wire/types";
import { Icon } from "./icons";

/** Lists longer than this are shown in parts. */
const PART = 20;
const OPEN_DEPTH = 3;
const LONGEST_TEXT = 200;

export type Source = { topic: string } | { state: string };

/** Units by field path, with `[]` for list elements. */
type Units = Record<string, string>;
const UnitsContext = createContext<Units>({});

export function Tree({ value, source, units = {} }: { value: Json; source: Source; units?: Units }) {
  usePlots();
  if (value === null || typeof value !== "object") return <div class="tree"><Leaf value={value} path="" source={source} /></div>;
  return (
    <UnitsContext.Provider value={units}>
      <ul class="tree">
        <Inside value={value} path="" source={source} depth={0} />
      </ul>
    </UnitsContext.Provider>
  );
}

interface Props {
  value: Json;
  path: string;
  source: Source;
  depth: number;
}

function entries(value: Json): [string, Json, boolean][] {
  if (Array.isArray(value)) return value.map((item, i) => [String(i), item, true]);
  if (value && typeof value === "object") return Object.entries(value).map(([key, item]) => [key, item, false]);
  return [];
}

function Inside({ value, path, source, depth }: Props) {
  const all = entries(value);
  if (all.length > PART * 1.5) return <Parts all={all} path={path} source={source} depth={depth} />;
  return <>{all.map((entry) => <Row key={entry[0]} entry={entry} path={path} source={source} depth={depth} />)}</>;
}

function Parts({ all, path, source, depth }: { all: [string, Json, boolean][]; path: string; source: Source; depth: number }) {
  const starts = [];
  for (let i = 0; i < all.length; i += PART) starts.push(i);
  return (
    <>
      {starts.map((start) => {
        const end = Math.min(start + PART, all.length);
        return (
          <Branch key={start} name={`${start} … ${end - 1}`} summary="" open={start === 0 && depth < 2}>
            {() => all.slice(start, end).map((entry) => <Row key={entry[0]} entry={entry} path={path} source={source} depth={depth + 1} />)}
          </Branch>
        );
      })}
    </>
  );
}

function Row({ entry: [name, value, index], path, source, depth }: { entry: [string, Json, boolean]; path: string; source: Source; depth: number }) {
  const here = index ? `${path}[${name}]` : path ? `${path}.${name}` : name;
  const children = entries(value);
  if (value !== null && typeof value === "object") {
    const flat = Array.isArray(value) && children.length <= 4 && value.every((item) => typeof item === "number");
    if (children.length === 0) return <li><span class="key">{name}</span> <span class="dim">{Array.isArray(value) ? "none" : "empty"}</span></li>;
    const summary = Array.isArray(value) ? units.plural(children.length, "item") : "";
    return (
      <Branch name={name} summary={summary} open={depth < OPEN_DEPTH && (flat || !Array.isArray(value) || children.length <= PART)}>
        {() => <Inside value={value} path={here} source={source} depth={depth + 1} />}
      </Branch>
    );
  }
  return (
    <li>
      <span class="key">{name}</span> <Leaf value={value} path={here} source={source} />
    </li>
  );
}

function Branch({ name, summary, open: first, children }: { name: string; summary: string; open: boolean; children(): preact.ComponentChildren }) {
  const [open, set] = useState(first);
  return (
    <li class="branch">
      <button class="toggle" aria-expanded={open} onClick={() => set(!open)}>
        <Icon name={open ? "down" : "launch"} />
        <span class="key">{name}</span>
        {summary && <span class="dim"> {summary}</span>}
      </button>
      {open && <ul>{children()}</ul>}
    </li>
  );
}

/** The JSON of proto3 writes 64-bit integers as strings. */
const INTEGER = /^-?\d{1,20}$/;

/** The unit of a number; for ns also the date or duration. */
function Unit({ path, value }: { path: string; value: Json }) {
  const unit = useContext(UnitsContext)[path.replace(/\[\d+\]/g, "[]")];
  if (!unit || typeof value === "boolean") return null;
  const time = unit === "ns" ? units.time_ns(Number(value)) : null;
  return <span class="dim"> {unit}{time && ` · ${time}`}</span>;
}

function Leaf({ value, path, source }: { value: Json; path: string; source: Source }) {
  if (typeof value === "number" || typeof value === "boolean" || (typeof value === "string" && INTEGER.test(value))) {
    const series = { ...source, field: path };
    const on = is_plotted(series);
    const shown = typeof value === "number" ? units.number(value) : String(value);
    const name = path || "value";
    return (
      <>
        <button class={on ? "number on" : "number"} aria-pressed={on} aria-label={`${name}: ${shown}. ${on ? "Remove from the plot" : "Plot"}`} title={on ? "Remove from the plot" : "Plot this"} onClick={() => toggle(series)}>
          {shown}
        </button>
        <Unit path={path} value={value} />
      </>
    );
  }
  if (value === null) return <span class="dim">null</span>;
  const text = String(value);
  return <span class="text">{text.length > LONGEST_TEXT ? `${text.slice(0, LONGEST_TEXT)}… (${units.count(text.length)} characters)` : text || "“”"}</span>;
}
