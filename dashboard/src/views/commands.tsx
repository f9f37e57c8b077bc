// Shows the current drivers, and stops them. Stop takes authority and sends nothing, so the receiver executes
// its fallback.

import { useDomain } from "../domain";
import { ErrorMessage, Head, NodeLink, Panel, State, Waiting } from "../parts/common";
import { STOP_PRIORITY, useStop } from "../parts/stop";
import * as units from "../units";
import { wire } from "../wire/socket";
import type { AuditLine, Command } from "../wire/types";
import { useConnectionState, useSub } from "../wire/use";

export function Commands() {
  const { commands, commands_error } = useDomain();
  return (
    <>
      <Head title="Commands" note="active drivers" changes="drive" />
      {!commands && <Waiting error={commands_error ? { message: commands_error } : null} what="the commands" />}
      {commands && !commands.length && (
        <p class="empty">No node receives commands. In Python: <code>node.command("/cmd_vel", Twist, apply, deadline=0.05, fallback=Twist())</code></p>
      )}
      {commands?.map((command) => <CommandPanel key={command.command} command={command} />)}
    </>
  );
}

function state_of(command: Command): string {
  return command.state === "fallback" && command.fallback_failed ? "fallback_failed" : command.state;
}

function CommandPanel({ command }: { command: Command }) {
  const link = useConnectionState();
  const { error, busy, stop, release, clear } = useStop(command.command);
  const off = link.is === "connecting" || !!wire.refusal("drive");
  const is_gone = command.receiver === null;
  return (
    <Panel title={command.command} tools={<State word={state_of(command)} />} class={command.held ? "held" : ""}>
      <div class="command">
        <div>
          <p class="driver">
            {command.held ? (
              <>Stopped by this dashboard, with priority {command.priority ?? STOP_PRIORITY}</>
            ) : command.driver ? (
              <><NodeLink name={command.driver} /> drives{command.priority != null && <span class="dim">, priority {command.priority}</span>}</>
            ) : (
              <>No driver</>
            )}
            {state_of(command) === "fallback_failed" && <b class="bad"> Its fallback failed: the robot may not be safe</b>}
            {is_gone && <b class="bad"> Its receiver is gone: Stop has no effect</b>}
            {command.state === "no_answer" && <b class="bad"> Its receiver does not answer: Stop does not reach it</b>}
            {command.stop_wanted && !command.held && <b class="bad"> Stop is not in force; retrying</b>}
          </p>
          <dl class="facts">
            <div><dt>Receiver</dt><dd>{command.receiver ? <NodeLink name={command.receiver} /> : "–"}</dd></div>
            <div><dt>Because</dt><dd>{command.reason?.replace(/_/g, " ") ?? "–"}</dd></div>
            <div><dt>Deadline</dt><dd>{units.duration_ns(command.deadline_ns)}</dd></div>
            <div><dt>Lease</dt><dd>{units.duration_ns(command.lease_ns)}</dd></div>
            <div><dt>Applied</dt><dd>{units.count(command.applied)}</dd></div>
            <div><dt>Ignored</dt><dd>{units.count(command.ignored)}</dd></div>
            <div><dt>Fallbacks</dt><dd>{units.count(command.fallbacks)}</dd></div>
          </dl>
        </div>
        <div class="command-buttons">
          <button class="stop big" disabled={off || command.held || is_gone} onClick={stop} aria-label={`Stop ${command.command}`}>
            {command.held ? "Stopped" : "Stop"}
          </button>
          {command.stop_wanted && <button disabled={off || busy} onClick={release}>Release</button>}
        </div>
      </div>
      <ErrorMessage text={error} clear={clear} />
      <p class="note">Stop takes authority with priority {STOP_PRIORITY} and sends nothing: the receiver executes its fallback until Release.</p>
      <Audit command={command.command} />
    </Panel>
  );
}

const MAX_AUDIT_LINES = 200;

function Audit({ command }: { command: string }) {
  const { data } = useSub<AuditLine[]>({ what: "command_log", command }, (old, data: { lines: AuditLine[] }) => [...(old ?? []), ...data.lines].slice(-MAX_AUDIT_LINES));
  if (!data?.length) return null;
  return (
    <details class="audit">
      <summary>What has happened ({data.length})</summary>
      <ol reversed tabIndex={0} aria-label={`Audit trail of ${command}`}>
        {[...data].reverse().map((line, i) => (
          <li key={data.length - i}>
            <span class="dim">{units.clock(line.time_s, true)}</span> <b>{line.kind.replace(/_/g, " ")}</b> {line.node} {line.priority != null && <span class="dim">priority {line.priority}</span>} {line.text}
          </li>
        ))}
      </ol>
    </details>
  );
}
