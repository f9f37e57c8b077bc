// The page of a topic: its messages, pictures and plots, its figures, and its endpoints.

import { useState } from "preact/hooks";
import { useDomain } from "../domain";
import { Picture, picture_of } from "../draw/picture";
import { Head, LossCount, NodeLink, Panel, Stat, total, Waiting } from "../parts/common";
import { TopicHistory } from "../parts/history";
import { PlotCharts, WindowChoice } from "../parts/plot";
import { Tree } from "../parts/tree";
import { charts, usePlots } from "../plots";
import { href } from "../router";
import * as units from "../units";
import { wire } from "../wire/socket";
import type { TopicEndpoint, Message, TopicRow } from "../wire/types";
import { useSub } from "../wire/use";

export function TopicPage({ name }: { name: string }) {
  const { figures } = useDomain();
  usePlots();
  if (!figures) return null;
  const row = figures.topics.find((t) => t.topic === name);
  const kind = row ? picture_of(row.types) : null;
  const plotted = charts(name).length > 0;
  return (
    <>
      <Head title={name} note={row ? row.types.join(", ") : "no publishers or subscribers"}>
        {plotted && <WindowChoice />}
      </Head>
      {row ? <Stats row={row} /> : <p class="empty">No node publishes or subscribes to {name} now. The topic reappears as soon as one does. <a href={href("topics")}>All topics</a></p>}
      {plotted && <div class="plots"><PlotCharts topic={name} /></div>}
      <div class="columns">
        {kind ? (
          <div>
            <Panel title="Picture"><Picture kind={kind} topic={name} /></Panel>
            {row && <EndpointTables row={row} />}
          </div>
        ) : null}
        <MessagePanel topic={name} />
        {row && !kind && <EndpointTables row={row} />}
      </div>
      <TopicHistory topic={name} />
    </>
  );
}

function Stats({ row }: { row: TopicRow }) {
  const lost_now = row.lost_in_interval;
  const mismatch = useDomain().figures!.mismatches.filter((m) => m.topic === row.topic);
  return (
    <>
      {mismatch.map((m) => (
        <p class="error" key={`${m.publisher} ${m.subscriber}`}><NodeLink name={m.publisher} /> and <NodeLink name={m.subscriber} /> do not match: {m.why}</p>
      ))}
      <div class="stats">
        <Stat name="Rate" value={units.rate(row.rate_hz)} note={units.bandwidth(row.bytes_per_s)} />
        <Stat name="Latency p50" value={units.duration_ns(row.latency.p50_ns)} note={`p99 ${units.duration_ns(row.latency.p99_ns)}`} />
        <Stat name="Maximum" value={units.duration_ns(row.latency.max_ns)} note="in the last interval" />
        <Stat name="Lost" value={units.count(total(row.lost))} note={lost_now ? `${units.count(lost_now)} just now` : "none just now"} tone={lost_now ? "bad" : undefined} />
        <Stat name="Behind" value={units.count(row.behind.messages)} note={row.behind.messages ? `oldest ${units.duration_ns(row.behind.age_ns)}` : "nothing unread"} />
        <Stat name="Memory" value={units.bytes(row.memory_bytes)} note={`lane ${row.lane ?? "–"}`} />
      </div>
    </>
  );
}

function MessagePanel({ topic }: { topic: string }) {
  const [held, hold] = useState<Message | null>(null);
  const { data, error } = useSub<Message>(held ? null : { what: "messages", topic, hz: 4 });
  const shown = held ?? data;
  const tools = shown && (
    <>
      <span class="dim">#{units.count(shown.seq)} · {units.bytes(shown.len)} · {units.clock(shown.sent_s, true)} from <NodeLink name={shown.node} /></span>
      <button aria-pressed={held !== null} onClick={() => hold(held ? null : data)}>{held ? "Resume" : "Pause"}</button>
    </>
  );
  return (
    <Panel title="Message" tools={tools} class="message">
      {error && <p class="error" role="alert">{error.message}</p>}
      {!shown ? (
        error ? null : <Waiting what="the next message" />
      ) : shown.json !== undefined ? (
        <>
          <p class="hint">Click a number to plot it.</p>
          <Tree value={shown.json} source={{ topic }} units={shown.units} />
          {shown.truncated && <p class="note">Long lists and bytes are truncated; <code>rnet topic echo {topic}</code> shows everything.</p>}
        </>
      ) : (
        <Hex hex={shown.hex ?? ""} len={shown.len} />
      )}
      {shown?.meta && Object.keys(shown.meta).length > 0 && (
        <details><summary>Metadata</summary><Tree value={shown.meta} source={{ topic }} /></details>
      )}
    </Panel>
  );
}

function Hex({ hex, len }: { hex: string; len: number }) {
  const lines = [];
  for (let at = 0; at < hex.length; at += 32) {
    const part = hex.slice(at, at + 32).match(/../g) ?? [];
    const text = part.map((pair) => parseInt(pair, 16)).map((code) => (code >= 32 && code < 127 ? String.fromCharCode(code) : "·")).join("");
    lines.push(`${(at / 2).toString(16).padStart(4, "0")}  ${part.join(" ").padEnd(47)}  ${text}`);
  }
  return (
    <>
      <pre class="hex" tabIndex={0} aria-label="Bytes of the message">{lines.join("\n") || "no bytes"}</pre>
      {hex.length / 2 < len && <p class="note">The first {hex.length / 2} of {units.plural(len, "byte")}.</p>}
    </>
  );
}

function EndpointTables({ row }: { row: TopicRow }) {
  return (
    <Panel title="Publishers and subscribers">
      <div class="wide" tabIndex={0} role="region" aria-label="Publishers and subscribers"><table class="narrow">
        <thead>
          <tr><th scope="col">Node</th><th scope="col">QoS</th><th scope="col" class="figure">Rate</th><th scope="col" class="figure">Lost</th><th scope="col" class="figure">Behind</th></tr>
        </thead>
        <tbody>
          {rows(row.publishers, "publishes")}
          {rows(row.subscribers, "subscribes")}
        </tbody>
      </table></div>
      {wire.hello && !row.publishers.length && <p class="note">No publishers: subscribers are waiting.</p>}
      {!row.subscribers.length && <p class="note">No subscribers: publishers send without waiting.</p>}
    </Panel>
  );
}

function rows(ends: TopicEndpoint[], word: string) {
  return ends.map((end, i) => (
    <tr key={`${word} ${end.node} ${i}`}>
      <th scope="row"><NodeLink name={end.node} /> <span class="dim">{word}</span></th>
      <td class="dim">{end.qos}</td>
      <td class="figure">{units.rate(end.rate_hz)}</td>
      <td class="figure"><LossCount lost={end.lost} /></td>
      <td class="figure">{word === "publishes" ? "" : end.behind.messages ? `${units.count(end.behind.messages)} (${units.duration_ns(end.behind.age_ns)})` : <span class="dim">0</span>}</td>
    </tr>
  ));
}
