import { useState } from "preact/hooks";
import { ErrorMessage, Head, Panel, Stat, Waiting } from "../parts/common";
import { Recordings } from "../parts/recordings";
import * as units from "../units";
import { wire } from "../wire/socket";
import type { Json, RecordData } from "../wire/types";
import { useConnectionState, useRequest, useSub } from "../wire/use";

export function Record() {
  const { data, error } = useSub<RecordData>({ what: "record" });
  return (
    <>
      <Head title="Recording" changes="operate" note={data?.folder ? `into ${data.folder}` : undefined} />
      {!data ? <Waiting error={error} what="the recorder" /> : (
        <>
          <Recording data={data} />
          <Recordings data={data} />
          <BlackBox box={data.blackbox} />
        </>
      )}
    </>
  );
}

function Recording({ data: { recording, folder_problem } }: { data: RecordData }) {
  const link = useConnectionState();
  const { busy, error, run, clear } = useRequest();
  const [topics, set_topics] = useState("");
  const [name, set_name] = useState("");
  const [done, set_done] = useState<string | null>(null);
  const off = link.is !== "open" || !!wire.refusal("operate") || busy;
  const start = async () => {
    const list = topics.split(/[\s,]+/).filter(Boolean);
    const answer = await run("record.start", name ? { topics: list, name } : { topics: list });
    if (answer) set_done(null);
  };
  const stop = async () => {
    const answer = await run("record.stop");
    if (!answer) return;
    const missing = answer.missing ? `, ${units.count(answer.missing)} missing` : ", none missing";
    const unheard = answer.unheard ? `; ${units.plural(answer.unheard, "publisher")} not received` : "";
    set_done(`${answer.file}: ${units.plural(answer.messages, "message")}${missing}${unheard}`);
  };
  return (
    <Panel title="Recording" tools={recording && <span class="recording"><span class="dot" aria-hidden="true" />recording</span>}>
      {recording ? (
        <>
          <div class="stats">
            <Stat name="Duration" value={units.span(recording.seconds)} />
            <Stat name="Messages" value={units.count(recording.messages)} />
            <Stat name="Written" value={units.bytes(recording.bytes)} />
            <Stat name="Missing" value={units.count(recording.missing)} note="lost because recording was too slow" tone={recording.missing ? "bad" : undefined} />
            {recording.unheard > 0 && <Stat name="Not received" value={units.plural(recording.unheard, "publisher")} tone="bad" />}
          </div>
          <p class="dim">{recording.file}</p>
          {recording.problem && <p class="error" role="alert">{recording.problem}</p>}
          <button class="primary" disabled={off} onClick={stop}>Stop recording</button>
        </>
      ) : (
        <form class="line" onSubmit={(event) => (event.preventDefault(), start())}>
          <input aria-label="Topics, by name or pattern" placeholder="All topics, or /imu /camera/**" value={topics} disabled={off} onInput={(event) => set_topics(event.currentTarget.value)} />
          <input aria-label="Name of the file" placeholder="Name by time" value={name} disabled={off} onInput={(event) => set_name(event.currentTarget.value)} />
          <button class="primary" type="submit" disabled={off || !!folder_problem}>Record</button>
        </form>
      )}
      {folder_problem && <p class="error" role="alert">{folder_problem}</p>}
      <ErrorMessage text={error} clear={clear} />
      {done && <p class="done" role="status">Written: {done}</p>}
      <p class="note">Recording does not slow publishers. <code>rnet bag info</code> shows the contents of a file.</p>
    </Panel>
  );
}

function BlackBox({ box }: { box: RecordData["blackbox"] }) {
  const link = useConnectionState();
  const { busy, error, run, clear } = useRequest();
  const [why, set_why] = useState("");
  const [done, set_done] = useState(false);
  if (!box) {
    return <Panel title="Black box"><p class="empty">No black box runs. <code>rnet blackbox run --trigger death</code> keeps the last seconds in memory and writes them to a file when a trigger fires.</p></Panel>;
  }
  const off = link.is !== "open" || !!wire.refusal("operate") || busy;
  const number = (key: string) => (typeof box[key] === "number" ? (box[key] as number) : null);
  const trigger = async () => set_done(!!(await run("blackbox.trigger", { why: why || "the dashboard" })));
  const triggers = Array.isArray(box.triggers) ? (box.triggers as Json[]).map(String) : [];
  return (
    <Panel title="Black box">
      <div class="stats">
        <Stat name="Keeps" value={units.span(number("kept_s"))} note={`in up to ${units.bytes(number("memory_bytes"))}`} />
        <Stat name="Messages" value={units.count(number("messages"))} />
        <Stat name="Missing" value={units.count(number("missing"))} tone={number("missing") ? "bad" : undefined} />
        {(number("unheard") ?? 0) > 0 && <Stat name="Not received" value={units.plural(number("unheard") ?? 0, "publisher")} tone="bad" />}
        <Stat name="Fired" value={units.count(number("fired"))} note={box.pending ? "writing a file" : units.plural(number("files") ?? 0, "file")} />
      </div>
      {triggers.length > 0 && <p>Triggers: {triggers.map((one, i) => <span key={one}>{i > 0 && ", "}<code>{one}</code></span>)}.</p>}
      {typeof box.last_file === "string" && <p class="dim">Last file: {box.last_file}</p>}
      <form class="line" onSubmit={(event) => (event.preventDefault(), trigger())}>
        <input aria-label="Reason" placeholder="Reason, such as: it stopped by itself" value={why} disabled={off} onInput={(event) => (set_why(event.currentTarget.value), set_done(false))} />
        <button class="primary" type="submit" disabled={off}>Save the last seconds</button>
      </form>
      <ErrorMessage text={error} clear={clear} />
      {done && <p class="done" role="status">The black box is writing a file.</p>}
    </Panel>
  );
}
