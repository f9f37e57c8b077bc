import { useState } from "preact/hooks";
import { ErrorMessage, Head, NodeLink, Panel, State, ConfirmButton, Waiting } from "../parts/common";
import { Table, type Column } from "../parts/table";
import * as units from "../units";
import { wire } from "../wire/socket";
import type { Launched } from "../wire/types";
import { useConnectionState, useRequest, useSub } from "../wire/use";

// Most nodes do not report readiness, so the launcher's record contains only their start.
export function Launch() {
  const { data, error } = useSub<{ nodes: Launched[] }>({ what: "launch" });
  const link = useConnectionState();
  const request = useRequest();
  const [logs, set_logs] = useState<{ node: string; text: string } | null>(null);
  const off = link.is !== "open" || !!wire.refusal("operate") || request.busy;
  const show_logs = async (node: string) => {
    const answer = await request.run("launch.logs", { node, lines: 200 });
    if (answer) set_logs({ node, text: answer.text });
  };
  const columns: Column<Launched>[] = [
    { title: "Node", by: (n) => n.node, cell: (n) => <NodeLink name={n.node} /> },
    { title: "State", by: (n) => n.state, cell: (n) => <><State word={n.state === "starting" ? "started" : n.state} />{n.end && <span class="dim"> {n.end}</span>}</> },
    { title: "Process", figure: true, by: (n) => n.pid, cell: (n) => n.pid ?? "–", opt: 2 },
    { title: "Restarts", figure: true, by: (n) => n.restarts, cell: (n) => (n.restarts ? <span class="warn">{n.restarts}</span> : "0"), opt: 2 },
    { title: "Since", figure: true, by: (n) => n.started_s, cell: (n) => units.clock(n.started_s), opt: 2 },
    { title: "File", by: (n) => n.file, cell: (n) => <span class="dim">{n.file}</span>, opt: 1 },
    {
      title: "Do",
      cell: (n) => (
        <span class="buttons">
          <button disabled={off} onClick={() => request.run("launch.restart", { node: n.node })} aria-label={`Restart ${n.node}`}>Restart</button>
          <ConfirmButton ask="Stop it?" disabled={off} act={() => request.run("launch.stop", { node: n.node })} label={`Stop ${n.node}`}>Stop</ConfirmButton>
          <ConfirmButton ask="Kill it?" disabled={off} act={() => request.run("launch.kill", { node: n.node })} label={`Kill ${n.node}`}>Kill</ConfirmButton>
          <button class="quiet" disabled={link.is !== "open"} onClick={() => show_logs(n.node)} aria-label={`Output of ${n.node}`}>Output</button>
        </span>
      ),
    },
  ];
  return (
    <>
      <Head title="Launch" changes="operate" note="nodes started by rnet launch on this host" />
      <ErrorMessage text={request.error} clear={request.clear} />
      {data ? (
        <Table label="Launched nodes" name="launch" columns={columns} rows={data.nodes} id={(n) => n.node}
          row_class={(n) => (n.state === "failed" ? "bad-row" : undefined)}
          empty={<><p>No launched nodes on this host.</p><p>List the nodes in <code>robot.toml</code>, and run <code>rnet launch</code>.</p></>} />
      ) : (
        <Waiting error={error} what="the launcher's records" />
      )}
      {logs && (
        <Panel title={`Output of ${logs.node}`} tools={<><button onClick={() => show_logs(logs.node)}>Refresh</button><button onClick={() => set_logs(null)}>Close</button></>}>
          <pre class="output" tabIndex={0}>{logs.text || "No output."}</pre>
        </Panel>
      )}
    </>
  );
}
