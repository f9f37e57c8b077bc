// The button that stops the robot. It takes authority over every command and sends nothing, so that each receiver
// falls back to what is safe. It asks nothing first: who presses it has no time to read.

import { useState } from "preact/hooks";
import { useDomain } from "../domain";
import { plural } from "../units";
import { wire } from "../wire/socket";
import { useLink } from "../wire/use";

export const STOP_PRIORITY = 100;

/** Takes each command at once, and says of which it could not be done. */
async function on_all(op: string, names: string[]): Promise<string | null> {
  const asked = names.map((command) =>
    wire.request(op, op === "command.take" ? { command, priority: STOP_PRIORITY } : { command }).then(
      () => null,
      (error: Error) => `${command}: ${error.message}`,
    ),
  );
  const wrong = (await Promise.all(asked)).filter((text) => text !== null);
  return wrong.length ? `${op === "command.take" ? "Not stopped" : "Not released"}: ${wrong.join("; ")}` : null;
}

export function useStop() {
  const [error, set_error] = useState<string | null>(null);
  const [busy, set_busy] = useState(false);
  const run = async (op: string, names: string[]) => {
    set_busy(true);
    set_error(await on_all(op, names));
    set_busy(false);
  };
  return { error, busy, stop: (names: string[]) => run("command.take", names), release: (names: string[]) => run("command.release", names), clear: () => set_error(null) };
}

/** In the head of the page: all commands of the domain. */
export function StopAll() {
  const { commands } = useDomain();
  const link = useLink();
  const { error, busy, stop, release, clear } = useStop();
  if (!commands?.length) return null;
  const held = commands.filter((c) => c.held).map((c) => c.command);
  const off = link.is !== "open" || wire.hello?.read_only;
  const names = commands.map((c) => c.command);
  const why = wire.hello?.read_only ? "The dashboard is read-only" : `Takes authority over ${plural(names.length, "command")}: ${names.join(", ")}`;
  return (
    <span class="stop-all">
      {error && (
        <span class="error" role="alert">
          {error} <button class="link" onClick={clear}>Dismiss</button>
        </span>
      )}
      {held.length > 0 && (
        <button disabled={off || busy} onClick={() => release(held)} title={`Gives back ${held.join(", ")}`}>
          Release
        </button>
      )}
      <button class="stop" disabled={off} title={why} onClick={() => stop(names)}>
        {held.length === names.length ? "Stopped" : "Stop"}
      </button>
    </span>
  );
}
