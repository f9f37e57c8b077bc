// Services and actions: their servers, and a form to call them.

import { useEffect, useRef, useState } from "preact/hooks";
import { Filter, Head, NodeLink, Panel, Waiting } from "../parts/common";
import { MessageForm, type Values } from "../parts/form";
import { Table, type Column } from "../parts/table";
import { href } from "../router";
import { InexactNumberError, typed_json } from "../typed";
import * as units from "../units";
import { wire } from "../wire/socket";
import type { Form, Json, Service } from "../wire/types";
import { useConnectionState, useSub } from "../wire/use";

const SERVICES = { what: "services" };

const COLUMNS: Column<Service>[] = [
  { title: "Name", by: (s) => s.service, cell: (s) => <a href={href("services", s.service)}>{s.service}</a> },
  { title: "Kind", by: (s) => s.kind, cell: (s) => s.kind },
  { title: "Request", by: (s) => s.request, cell: (s) => <span class="dim">{s.request ?? "raw"}</span>, opt: 2 },
  { title: "Reply", by: (s) => s.reply, cell: (s) => <span class="dim">{s.reply ?? "raw"}</span>, opt: 1 },
  { title: "Servers", by: (s) => s.nodes.join(), cell: (s) => s.nodes.map((node, i) => <span key={node}>{i > 0 && ", "}<NodeLink name={node} /></span>) },
  { title: "Clients", figure: true, by: (s) => s.clients, cell: (s) => units.count(s.clients), opt: 1 },
];

export function Services() {
  const { data, error } = useSub<{ services: Service[] }>(SERVICES);
  const [filter, set_filter] = useState("");
  const rows = (data?.services ?? []).filter((s) => s.service.toLowerCase().includes(filter.toLowerCase()));
  return (
    <>
      <Head title="Services and actions" note={data ? units.count(data.services.length) : undefined}>
        <Filter value={filter} set={set_filter} label="Filter by name" />
      </Head>
      {data ? (
        <Table label="Services and actions" name="services" columns={COLUMNS} rows={rows} id={(s) => s.service}
          empty={filter ? <p>No service has “{filter}” in its name.</p> : <p>No services or actions. In Python: <code>node.service("/plan", Request, Reply, handler)</code></p>} />
      ) : (
        <Waiting error={error} what="the services" />
      )}
    </>
  );
}

export function ServicePage({ name }: { name: string }) {
  const { data, error } = useSub<{ services: Service[] }>(SERVICES);
  const service = data?.services.find((s) => s.service === name);
  return (
    <>
      <Head title={name} changes="operate" note={service && `${service.kind} of ${service.nodes.join(", ")}`} />
      {!data && <Waiting error={error} what="the services" />}
      {data && !service && <p class="empty">No node serves {name} now. <a href={href("services")}>All services</a></p>}
      {service && <CallPanel service={service} />}
    </>
  );
}

interface Answer {
  n: number;
  kind: "feedback" | "reply" | "error" | "end";
  value: Json;
}

const MAX_ANSWERS = 100;

function useCall(service: Service) {
  const [answers, set_answers] = useState<Answer[]>([]);
  const [running, set_running] = useState<number | null>(null);
  const next = useRef(0);
  const now = useRef<number | null>(null);
  const add = (kind: Answer["kind"], value: Json) => {
    next.current += 1;
    const n = next.current;
    set_answers((old) => [...old, { n, kind, value }].slice(-MAX_ANSWERS));
  };
  // Leaving the view cancels its call, because the answer would not be shown.
  useEffect(() => () => {
    if (now.current !== null) wire.request("cancel", { call: now.current }).catch(() => {});
  }, []);
  return {
    answers,
    running: running !== null,
    async call(request: Json, timeout_s: number) {
      set_answers([]);
      const began = performance.now();
      const { id, answer } = wire.start_request("call", { service: service.service, request, timeout_s }, (part) => {
        if (part.feedback !== undefined) add("feedback", part.feedback);
        else add("reply", part.reply);
      });
      now.current = id;
      set_running(id);
      try {
        const last = await answer;
        if (last.reply !== undefined) add("reply", last.reply);
        add("end", `done in ${units.duration_s((performance.now() - began) / 1000)}`);
      } catch (error) {
        add("error", (error as Error).message);
      }
      now.current = null;
      set_running(null);
    },
    cancel() {
      if (now.current !== null) wire.request("cancel", { call: now.current }).catch((error: Error) => add("error", error.message));
    },
  };
}

function CallPanel({ service }: { service: Service }) {
  const link = useConnectionState();
  const [form, set_form] = useState<Form | null>(null);
  const [wrong, set_wrong] = useState<string | null>(null);
  const [values, set_values] = useState<Values>({});
  const [text, set_text] = useState("");
  const [as_text, set_as_text] = useState(false);
  const [timeout_s, set_timeout] = useState(5);
  const { answers, running, call, cancel } = useCall(service);
  useEffect(() => {
    wire.request("type", { service: service.service, part: "request" }).then(
      (answer) => set_form(answer.form),
      (error: Error) => set_wrong(error.message),
    );
  }, [service.request]);
  const raw = form?.kind === "raw";
  const send = () => {
    try {
      call(raw ? text : as_text ? typed_json(text || "{}") : values, timeout_s);
      set_wrong(null);
    } catch (error) {
      set_wrong(no_request(error));
    }
  };
  const switch_to = (json: boolean) => {
    if (json) set_text(JSON.stringify(values, null, 2));
    else {
      try {
        const typed = typed_json(text || "{}");
        if (typed === null || typeof typed !== "object" || Array.isArray(typed)) return set_wrong("The form needs a JSON object: {…}");
        set_values(typed);
      } catch (error) {
        set_wrong(no_request(error));
        return;
      }
    }
    set_wrong(null);
    set_as_text(json);
  };
  const off = link.is !== "open" || !!wire.refusal("operate");
  const kinds = form && !raw && (
    <span class="segments" role="group" aria-label="Input mode">
      <button aria-pressed={!as_text} onClick={() => switch_to(false)}>Form</button>
      <button aria-pressed={as_text} onClick={() => switch_to(true)}>JSON</button>
    </span>
  );
  return (
    <div class="columns">
      <Panel title={<>Request <span class="dim">{service.request ?? "raw"}</span></>} tools={kinds}>
        <form class="call" onSubmit={(event) => (event.preventDefault(), send())}>
          {!form && !wrong && <Waiting what="the type" />}
          {form && !raw && !as_text && <MessageForm form={form} values={values} set={set_values} off={off} />}
          {form && (raw || as_text) && <textarea aria-label="Request" rows={8} spellcheck={false} value={text} disabled={off} onInput={(event) => set_text(event.currentTarget.value)} />}
          {wrong && <p class="error" role="alert">{wrong}</p>}
          <div class="buttons">
            <button class="primary" type="submit" disabled={off || running || !form}>{service.kind === "action" ? "Send the goal" : "Call"}</button>
            {running && <button type="button" onClick={cancel}>Cancel</button>}
            <label class="inline">Timeout <input class="number-input" type="number" min={0.1} max={3600} step="any" value={timeout_s} onChange={(event) => set_timeout(event.currentTarget.valueAsNumber || 5)} /> s</label>
          </div>
        </form>
      </Panel>
      <Panel title={<>{service.kind === "action" ? "Feedback and result" : "Reply"} <span class="dim">{service.reply ?? "raw"}</span></>}>
        {!answers.length && <p class="empty dim">{running ? "Waiting for the reply…" : "No calls yet."}</p>}
        <ol class="answers" aria-live="polite">
          {answers.map((answer) => (
            <li key={answer.n} class={answer.kind}>
              <span class={`tag ${answer.kind === "error" ? "bad" : ""}`}>{answer.kind === "end" ? "end" : answer.kind}</span>
              {answer.kind === "error" || answer.kind === "end" ? <span class={answer.kind === "error" ? "bad" : "dim"}>{String(answer.value)}</span> : <Shown value={answer.value} />}
            </li>
          ))}
        </ol>
      </Panel>
    </div>
  );
}

function no_request(error: unknown): string {
  // The type may have 64-bit numbers, which protobuf JSON writes as strings.
  return error instanceof InexactNumberError ? `${error.message}, or write it in quotes` : "The request is not valid JSON.";
}

/** An answer is a single value, so its numbers cannot be plotted: it is shown as text. */
function Shown({ value }: { value: Json }) {
  if (typeof value === "string") return <pre class="output">{value || "no bytes"}</pre>;
  return <pre class="output">{JSON.stringify(value, null, 2)}</pre>;
}
