// Shows the state as a tree, and changes it if permitted.

import { useState } from "preact/hooks";
import { ErrorMessage, Filter, Head, NodeLink, Panel, ConfirmButton, Waiting } from "../parts/common";
import { HostChoice } from "../parts/host";
import { Icon } from "../parts/icons";
import { PlotCharts } from "../parts/plot";
import { Tree } from "../parts/tree";
import { charts, usePlots } from "../plots";
import { InexactNumberError, typed_json } from "../typed";
import * as units from "../units";
import { wire } from "../wire/socket";
import type { Json, StateData, StateEntry } from "../wire/types";
import { useConnectionState, useRequest, useSub } from "../wire/use";

interface StateEntries {
  entries: Map<string, StateEntry>;
  more: number;
  /** When the values of another host that does not answer were last known. */
  away_since_s: number | null;
}

function merge(old: StateEntries | null, data: StateData): StateEntries {
  const entries = data.whole || !old ? new Map<string, StateEntry>() : old.entries;
  for (const entry of data.entries) entries.set(entry.key, entry);
  for (const key of data.deleted ?? []) entries.delete(key);
  const away_since_s = data.away ? (data.known_s ?? null) : null;
  return { entries, more: data.more ?? (data.whole ? 0 : (old?.more ?? 0)), away_since_s };
}

export function State() {
  usePlots();
  const [host, set_host] = useState<string | null>(null);
  const { data, error } = useSub<StateEntries>(host === null ? { what: "state", prefix: "" } : { what: "state", prefix: "", host }, merge);
  const at = host === null ? "" : `@${host}`;
  const [filter, set_filter] = useState("");
  const [chosen, choose] = useState<string | null>(null);
  const all = data ? [...data.entries.values()].sort((a, b) => (a.key < b.key ? -1 : 1)) : [];
  const word = filter.toLowerCase();
  const shown = all.filter((entry) => entry.key.toLowerCase().includes(word));
  const any = charts().some(({ series }) => series[0]!.state !== undefined);
  const entry = chosen === null ? undefined : data?.entries.get(chosen);
  return (
    <>
      <Head title="State" changes="operate" note={data ? units.plural(all.length + data.more, "key") : undefined}>
        <HostChoice host={host} set={(host) => (set_host(host), choose(null))} />
        <Filter value={filter} set={set_filter} label="Filter by key" />
      </Head>
      {data?.away_since_s != null && <ErrorMessage text={`${at} does not answer: last known state, from ${units.clock(data.away_since_s)}`} />}
      {data && error && <ErrorMessage text={error.message} />}
      {!data && <Waiting error={error} what="the state" />}
      {data && (
        <div class="columns side">
          <Panel title="Keys">
            {shown.length ? (
              <ul class="tree keys"><Level entries={shown} prefix={at} chosen={chosen} choose={choose} open={filter !== ""} /></ul>
            ) : (
              <div class="empty">{filter ? <p>No key contains “{filter}”.</p> : <p>No state{host !== null && ` on ${host}`} yet. In Python: <code>node.state["/arm/mode"] = "idle"</code></p>}</div>
            )}
            {data.more > 0 && <p class="note">{units.plural(data.more, "more key")} not shown; <code>rnet state list {at}</code> shows all.</p>}
          </Panel>
          <div>
            {chosen !== null && entry && <EntryPanel key={chosen} entry={entry} />}
            {chosen !== null && !entry && <Panel title={chosen}><p class="empty">This key has been deleted.</p></Panel>}
            {chosen === null && all.length > 0 && <Panel><p class="empty">Select a key to see its writer, plot it or change it.</p></Panel>}
            {any && <div class="plots"><PlotCharts /></div>}
            <NewKey key={at} at={at} choose={choose} />
          </div>
        </div>
      )}
    </>
  );
}

interface LevelProps {
  entries: StateEntry[];
  prefix: string;
  chosen: string | null;
  choose(key: string): void;
  open: boolean;
}

function Level({ entries, prefix, chosen, choose, open }: LevelProps) {
  const here: StateEntry[] = [];
  const below = new Map<string, StateEntry[]>();
  for (const entry of entries) {
    const [first = "", ...rest] = entry.key.slice(prefix.length + 1).split("/");
    if (!rest.length) here.push(entry);
    else below.set(first, [...(below.get(first) ?? []), entry]);
  }
  return (
    <>
      {[...below].map(([name, inside]) => <Folder key={name} name={name} entries={inside} prefix={`${prefix}/${name}`} chosen={chosen} choose={choose} open={open} />)}
      {here.map((entry) => (
        <li key={entry.key}>
          <button class="entry" aria-current={entry.key === chosen} onClick={() => choose(entry.key)} data-key={entry.key}>
            <span class="key">{entry.key.slice(prefix.length + 1)}</span>
            <span class="value">{short(entry.value)}</span>
          </button>
        </li>
      ))}
    </>
  );
}

function Folder({ name, entries, ...rest }: LevelProps & { name: string }) {
  const [open, set] = useState(entries.length <= 30);
  const shown = open || rest.open;
  return (
    <li class="branch">
      <button class="toggle" aria-expanded={shown} onClick={() => set(!open)}>
        <Icon name={shown ? "down" : "launch"} />
        <span class="key">{name}</span> <span class="dim">{entries.length}</span>
      </button>
      {shown && <ul><Level entries={entries} {...rest} /></ul>}
    </li>
  );
}

function short(value: Json): string {
  const text = typeof value === "string" ? value : typeof value === "number" ? units.number(value) : JSON.stringify(value);
  return text.length > 40 ? `${text.slice(0, 40)}…` : text;
}

/** Whether values of this type are typed without quotes. */
function is_text(type: string): boolean {
  return type === "str" || type === "bytes";
}

function EntryPanel({ entry }: { entry: StateEntry }) {
  const link = useConnectionState();
  const { busy, error, run, clear } = useRequest();
  const [typed, set_typed] = useState<string | null>(null);
  const [wrong, set_wrong] = useState<string | null>(null);
  const off = link.is !== "open" || !!wire.refusal("operate");
  const text = typed ?? (is_text(entry.type) ? String(entry.value) : JSON.stringify(entry.value, null, typeof entry.value === "object" ? 2 : undefined));
  const save = async () => {
    let value: Json = text;
    try {
      if (!is_text(entry.type)) value = typed_json(text);
    } catch (error) {
      set_wrong(error instanceof InexactNumberError ? error.message : `Not a valid ${entry.type}: a string needs quotes, such as "idle"`);
      return;
    }
    set_wrong(null);
    if (await run("state.set", { key: entry.key, value, type: entry.type })) set_typed(null);
  };
  const facts: [string, preact.ComponentChildren][] = [
    ["Type", entry.type],
    ["Written by", entry.node ? <NodeLink name={entry.node} /> : "–"],
    ["At", units.clock(entry.written_s)],
    ["Revision", `${units.count(entry.revision)}, version ${units.count(entry.version)}`],
    ["Lifetime", [entry.durable ? "durable" : "until reboot", entry.ttl_s != null ? `for ${units.span(entry.ttl_s)}` : null, entry.last_will ? "has a last will" : null].filter(Boolean).join(", ")],
  ];
  return (
    <Panel title={entry.key} tools={<ConfirmButton ask="Delete it?" act={() => run("state.delete", { key: entry.key })} disabled={off || busy} label={`Delete ${entry.key}`}>Delete</ConfirmButton>}>
      <dl class="facts">{facts.map(([name, value]) => <div key={name}><dt>{name}</dt><dd>{value}</dd></div>)}</dl>
      <Tree value={entry.value} source={{ state: entry.key }} />
      <form class="edit" onSubmit={(event) => (event.preventDefault(), save())}>
        <label for="state-value">New value</label>
        <textarea id="state-value" rows={Math.min(12, text.split("\n").length)} spellcheck={false} value={text} disabled={off} onInput={(event) => set_typed(event.currentTarget.value)}
          onKeyDown={(event) => event.key === "Enter" && (event.ctrlKey || !text.includes("\n")) && (event.preventDefault(), save())} />
        <span class="buttons">
          <button class="primary" type="submit" disabled={off || busy || typed === null}>Set</button>
          {typed !== null && <button type="button" onClick={() => (set_typed(null), set_wrong(null))}>Undo</button>}
        </span>
      </form>
      <ErrorMessage text={wrong ?? error} clear={wrong ? () => set_wrong(null) : clear} />
    </Panel>
  );
}

function NewKey({ at, choose }: { at: string; choose(key: string): void }) {
  const link = useConnectionState();
  const { busy, error, run, clear } = useRequest();
  const [key, set_key] = useState("");
  const [text, set_text] = useState("");
  const [wrong, set_wrong] = useState<string | null>(null);
  if (wire.refusal("operate")) return null;
  const add = async () => {
    let value: Json = text;
    try {
      value = typed_json(text);
    } catch (error) {
      // Input that is not JSON is a string, as on the command line.
      if (error instanceof InexactNumberError) return set_wrong(error.message);
    }
    set_wrong(null);
    if (await run("state.set", { key: at + key, value })) {
      choose(at + key);
      set_key("");
      set_text("");
    }
  };
  return (
    <Panel title={at ? `New key of ${at}` : "New key"}>
      <form class="line" onSubmit={(event) => (event.preventDefault(), add())}>
        <input aria-label="Key" placeholder="/arm/mode" required pattern="/.+" value={key} onInput={(event) => set_key(event.currentTarget.value)} />
        <input aria-label="Value" placeholder='"idle", 1.5, [1, 2]' required value={text} onInput={(event) => set_text(event.currentTarget.value)} />
        <button type="submit" disabled={busy || link.is !== "open"}>Set</button>
      </form>
      <ErrorMessage text={wrong ?? error} clear={wrong ? () => set_wrong(null) : clear} />
    </Panel>
  );
}
