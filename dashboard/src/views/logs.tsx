import { useEffect, useRef, useState } from "preact/hooks";
import { Filter, Head, NodeLink, Waiting } from "../parts/common";
import * as units from "../units";
import type { LogLine } from "../wire/types";
import { useSub } from "../wire/use";

const LEVELS = ["debug", "info", "warning", "error", "fatal"];
const MAX_KEPT_LINES = 2000;
/** Maximum number of shown lines, the newest ones; a browser is slow with more. */
const MAX_SHOWN_LINES = 400;

interface Numbered extends LogLine {
  n: number;
}

interface LogBuffer {
  lines: Numbered[];
  next: number;
}

function add(old: LogBuffer | null, data: { lines: LogLine[] }): LogBuffer {
  let next = old?.next ?? 0;
  const lines = [...(old?.lines ?? []), ...data.lines.map((line) => ({ ...line, n: next++ }))];
  return { lines: lines.slice(-MAX_KEPT_LINES), next };
}

export function Logs({ name = "" }: { name: string }) {
  const [level, set_level] = useState(localStorage.getItem("rnet.level") ?? "info");
  const [node, set_node] = useState(name);
  const [text, set_text] = useState("");
  const [follow, set_follow] = useState(true);
  const { data, error } = useSub<LogBuffer>({ what: "logs", level, node: useDebounced(node), text: useDebounced(text), history: 500 }, add);
  const list = useRef<HTMLDivElement>(null);
  const lines = data?.lines.slice(-MAX_SHOWN_LINES) ?? [];
  const newest = lines[lines.length - 1]?.n;
  useEffect(() => {
    if (follow && list.current) list.current.scrollTop = list.current.scrollHeight;
  }, [newest, follow]);
  const scrolled = () => {
    const at = list.current!;
    const end = at.scrollHeight - at.scrollTop - at.clientHeight < 24;
    if (end !== follow) set_follow(end);
  };
  return (
    <div class="fill">
      <Head title="Logs" note={data ? units.plural(data.lines.length, "line") : undefined}>
        <select aria-label="Lowest level" value={level} onChange={(event) => (set_level(event.currentTarget.value), localStorage.setItem("rnet.level", event.currentTarget.value))}>
          {LEVELS.map((one) => <option key={one} value={one}>{one === "fatal" ? "fatal" : `${one} and above`}</option>)}
        </select>
        <input class="filter" type="search" aria-label="Part of the node's name" placeholder="Node" value={node} onInput={(event) => set_node(event.currentTarget.value)} />
        <Filter value={text} set={set_text} label="Text" />
        <button aria-pressed={follow} onClick={() => set_follow(!follow)}>Follow</button>
      </Head>
      {error && <Waiting error={error} what="the logs" />}
      {!error && !lines.length && <p class="empty">No lines{text || node ? " that match" : " yet"}. In Python: <code>node.log.info("hello")</code></p>}
      <div class={lines.length ? "logs" : "hidden"} ref={list} onScroll={scrolled} role="log" aria-live="off" aria-label="Log lines" tabIndex={0}>
        {lines.map((line) => (
          <div key={line.n} class={`log level-${line.level}`} title={line.file ? `${line.file}:${line.line}` : undefined}>
            <span class="dim">{units.clock(line.time_s, true)}</span>
            <span class="log-level">{line.level}</span>
            <span class="log-node"><NodeLink name={line.node} /></span>
            <span class="log-text">{line.message}</span>
          </div>
        ))}
      </div>
    </div>
  );
}

/** The text after a pause in typing, so that not every letter causes a request. */
function useDebounced(text: string): string {
  const [calm, set] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => set(text), 250);
    return () => clearTimeout(timer);
  }, [text]);
  return calm;
}
