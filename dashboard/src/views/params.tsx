// Shows and sets parameters. The server rejects an invalid value with a reason, and the current value is
// shown again.

import { useEffect, useRef, useState } from "preact/hooks";
import { useDomain } from "../domain";
import { ErrorMessage, Filter, Head, NodeLink, Panel, Waiting } from "../parts/common";
import { HostChoice } from "../parts/host";
import { InexactNumberError, typed_json, whole as whole_number } from "../typed";
import * as units from "../units";
import { wire } from "../wire/socket";
import type { Json, Param } from "../wire/types";
import { useConnectionState, useSub } from "../wire/use";

const DEBOUNCE_MS = 120;

export function Params({ name: node = "" }: { name: string }) {
  // The name of a node of another host includes the host: @robot/arm.
  const [host, set_host] = useState<string | null>(node.startsWith("@") ? node.slice(1).split("/")[0]! : null);
  const { data, error } = useSub<{ params: Param[]; away?: string | null }>(host === null ? { what: "params" } : { what: "params", host });
  const { figures } = useDomain();
  const [filter, set_filter] = useState(node);
  const word = filter.toLowerCase();
  const shown = (data?.params ?? []).filter((p) => `${p.node}${p.name}`.toLowerCase().includes(word));
  const nodes = [...new Set(shown.map((p) => p.node))].sort();
  // The figures do not list all nodes of other hosts.
  const running = new Set(figures?.nodes.map((n) => n.node));
  const is_dead = (node: string) => host === null && figures !== null && !running.has(node);
  return (
    <>
      <Head title="Parameters" changes="operate" note={data ? units.count(data.params.length) : undefined}>
        <HostChoice host={host} set={set_host} />
        <Filter value={filter} set={set_filter} label="Filter by node or name" />
      </Head>
      {data?.away && <ErrorMessage text={`Last known values of host ${host}: ${data.away}`} />}
      {!data && <Waiting error={error} what="the parameters" />}
      {data && !shown.length && (
        <div class="empty">
          {filter ? <p>No parameter has “{filter}” in its name.</p> : <p>No node has declared a parameter. In Python: <code>node.param("/gain", default=1.0, min=0, max=10)</code></p>}
        </div>
      )}
      {nodes.map((node) => (
        <Panel key={node} title={<NodeLink name={node} />} class={is_dead(node) ? "dead" : ""} tools={is_dead(node) && <span class="tag bad">not running</span>}>
          {is_dead(node) && <p class="hint">The node is not running. It uses these values when it starts.</p>}
          <ul class="params">
            {shown.filter((p) => p.node === node).map((p) => <ParamRow key={p.name} param={p} />)}
          </ul>
        </Panel>
      ))}
    </>
  );
}

function same(a: Json | undefined, b: Json | undefined): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}

/** Sends the last value after a pause, one request at a time, and reports rejections. */
function useSet(param: Param) {
  const [wanted, set_wanted] = useState<{ value: Json } | null>(null);
  const [refused, set_refused] = useState<string | null>(null);
  const next = useRef<{ value: Json } | null>(null);
  const busy = useRef(false);
  const timer = useRef(0);
  const send = async () => {
    if (busy.current || !next.current) return;
    const { value } = next.current;
    next.current = null;
    busy.current = true;
    try {
      await wire.request("param.set", { node: param.node, name: param.name, value });
      set_refused(null);
    } catch (error) {
      set_refused((error as Error).message);
      if (!next.current) set_wanted(null);
    }
    busy.current = false;
    send();
  };
  // The requested value is in effect: from here on the server's value is shown.
  useEffect(() => {
    if (wanted && !next.current && !busy.current && same(wanted.value, param.value)) set_wanted(null);
  });
  // If another client has set it in the meantime, its value is shown.
  useEffect(() => {
    if (!wanted) return;
    const settle = setTimeout(() => !next.current && !busy.current && set_wanted(null), 1500);
    return () => clearTimeout(settle);
  }, [wanted]);
  useEffect(() => () => {
    // The last slider position is sent, even if the view is left immediately.
    clearTimeout(timer.current);
    send();
  }, []);
  return {
    value: wanted ? wanted.value : param.value,
    refused,
    set(value: Json, at_once = false) {
      set_wanted({ value });
      set_refused(null);
      next.current = { value };
      clearTimeout(timer.current);
      timer.current = window.setTimeout(send, at_once ? 0 : DEBOUNCE_MS);
    },
    async reset() {
      next.current = null;
      set_wanted(null);
      try {
        await wire.request("param.reset", { node: param.node, name: param.name });
        set_refused(null);
      } catch (error) {
        set_refused((error as Error).message);
      }
    },
  };
}

function ParamRow({ param }: { param: Param }) {
  const link = useConnectionState();
  const { value, refused, set, reset } = useSet(param);
  const off = link.is !== "open" || !!wire.refusal("operate") || !!param.read_only;
  const id = `param ${param.node}${param.name}`.replace(/\W+/g, "-");
  const range = param.min != null || param.max != null ? `${param.min ?? "–∞"} to ${param.max ?? "∞"}${param.unit ? ` ${param.unit}` : ""}` : null;
  const changed = param.declared !== false && param.is_default === false;
  return (
    <li class="param" data-param={`${param.node}${param.name}`}>
      <div class="param-name">
        <label for={id}>{param.name}</label>
        {param.read_only && <span class="tag">read-only</span>}
        {param.durable && <span class="tag">durable</span>}
        {param.declared === false && <span class="tag">not declared</span>}
        {param.description && <span class="dim">{param.description}</span>}
      </div>
      <div class="param-value">
        <Control param={param} value={value} set={set} off={off} id={id} />
        {!param.node.startsWith("@") && <button class="quiet" disabled={off || !changed} onClick={reset} title={`Back to the default ${JSON.stringify(param.default)}`}>Reset</button>}
      </div>
      <div class="param-note dim">
        {[param.type, range, param.is_default ? "default" : param.set_by ? `set by ${param.set_by}` : null].filter(Boolean).join(" · ")}
      </div>
      {(refused || param.problem) && <p class="error" role="alert">{refused ?? param.problem}</p>}
    </li>
  );
}

interface ControlProps {
  param: Param;
  value: Json;
  set(value: Json, at_once?: boolean): void;
  off: boolean;
  id: string;
}

function Control({ param, value, set, off, id }: ControlProps) {
  const { type, min, max, choices, unit } = param;
  if (type === "bool" || typeof value === "boolean") {
    return (
      <span class="switch">
        <input id={id} type="checkbox" role="switch" checked={value === true} disabled={off} onChange={(event) => set(event.currentTarget.checked, true)} />
        <span aria-hidden="true">{value === true ? "on" : "off"}</span>
      </span>
    );
  }
  if (choices?.length && typeof value === "string") {
    return (
      <select id={id} value={value} disabled={off} onChange={(event) => set(event.currentTarget.value, true)}>
        {choices.map((choice) => <option key={choice} value={choice}>{choice}</option>)}
      </select>
    );
  }
  if (typeof value === "number") {
    const whole = type === "int";
    const slides = min != null && max != null && max > min;
    const step = whole ? 1 : slides ? nice((max - min) / 200) : "any";
    return (
      <>
        {slides && (
          <input id={id} type="range" min={min} max={max} step={step} value={value} disabled={off} onInput={(event) => set(event.currentTarget.valueAsNumber)} />
        )}
        <NumberInput id={slides ? `${id}-number` : id} label={slides ? `${param.name} as a number` : undefined} value={value} whole={whole} off={off} set={(next) => set(next, true)} />
        {unit && <span class="unit dim">{unit}</span>}
      </>
    );
  }
  return <TextInput id={id} value={value} as_json={typeof value !== "string"} off={off} set={(next) => set(next, true)} />;
}

function nice(step: number): number {
  return 10 ** Math.floor(Math.log10(step));
}

/** A number is sent when typing is complete, not after each digit: 100 begins with 1. */
function NumberInput({ id, label, value, whole, off, set }: { id: string; label?: string; value: number; whole: boolean; off: boolean; set(value: number): void }) {
  const [typed, set_typed] = useState<string | null>(null);
  const [wrong, set_wrong] = useState<string | null>(null);
  const done = (text: string) => {
    try {
      const next = whole ? whole_number(text) : Number(text);
      set_typed(null);
      if (text.trim() !== "" && Number.isFinite(next) && next !== value) set(next);
    } catch (error) {
      set_wrong((error as Error).message);
    }
  };
  return (
    <>
      <input
        id={id}
        class="number-input"
        aria-invalid={wrong !== null}
        type="number"
        inputMode={whole ? "numeric" : "decimal"}
        step={whole ? 1 : "any"}
        aria-label={label}
        value={typed ?? String(value)}
        disabled={off}
        onInput={(event) => (set_typed(event.currentTarget.value), set_wrong(null))}
        onBlur={(event) => typed !== null && done(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === "Enter") done(event.currentTarget.value);
          if (event.key === "Escape") (set_typed(null), set_wrong(null));
        }}
      />
      {wrong && <span class="bad">{wrong}</span>}
    </>
  );
}

function TextInput({ id, value, as_json, off, set }: { id: string; value: Json; as_json: boolean; off: boolean; set(value: Json): void }) {
  const [typed, set_typed] = useState<string | null>(null);
  const [wrong, set_wrong] = useState<string | null>(null);
  const done = (text: string) => {
    try {
      const next = as_json ? typed_json(text) : text;
      set_typed(null);
      set_wrong(null);
      if (!same(next, value)) set(next);
    } catch (error) {
      set_wrong(error instanceof InexactNumberError ? error.message : "not JSON, as [1, 2]");
    }
  };
  return (
    <>
      <input
        id={id}
        class="text-input"
        value={typed ?? (as_json ? JSON.stringify(value) : String(value))}
        aria-invalid={wrong !== null}
        disabled={off}
        onInput={(event) => set_typed(event.currentTarget.value)}
        onBlur={(event) => typed !== null && done(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === "Enter") done(event.currentTarget.value);
          if (event.key === "Escape") (set_typed(null), set_wrong(null));
        }}
      />
      {wrong && <span class="bad">{wrong}</span>}
    </>
  );
}
