// The Stop button. It takes authority over every command and sends nothing, so that each receiver executes
// its fallback. It asks for no confirmation, because it is used in emergencies.

import { useState } from "preact/hooks";
import { useDomain } from "../domain";
import { plural } from "../units";
import { wire } from "../wire/socket";
import { useConnectionState } from "../wire/use";

export const STOP_PRIORITY = 100;

interface Refused {
  command: string;
  message: string;
}

/** One request for all commands, or for one. Resolves to the error text, if any. */
async function ask(op: "take" | "release", command: string | null): Promise<string | null> {
  const fields = op === "take" ? { priority: STOP_PRIORITY } : {};
  const not = op === "take" ? "Not stopped" : "Not released";
  try {
    if (command !== null) await wire.request(`command.${op}`, { command, ...fields });
    else {
      const { refused }: { refused: Refused[] } = await wire.request(`command.${op}_all`, fields);
      if (refused.length) return `${not}: ${refused.map((one) => `${one.command}: ${one.message}`).join("; ")}`;
    }
    return null;
  } catch (error) {
    return `${not}: ${(error as Error).message}`;
  }
}

/** Stops and releases one command, or all (`null`). */
export function useStop(command: string | null) {
  const [error, set_error] = useState<string | null>(null);
  const [busy, set_busy] = useState(false);
  const run = async (op: "take" | "release") => {
    set_busy(true);
    set_error(await ask(op, command));
    set_busy(false);
  };
  return { error, busy, stop: () => run("take"), release: () => run("release"), clear: () => set_error(null) };
}

/** In the page header: all commands of the domain. */
export function StopAll() {
  const { commands: known, commands_error } = useDomain();
  const link = useConnectionState();
  const { error, busy, stop, release, clear } = useStop(null);
  const commands = known ?? [];
  const none = known ? "No node receives commands" : (commands_error ?? "The commands are not loaded yet");
  const wanted = commands.filter((c) => c.stop_wanted);
  const lost = wanted.filter((c) => !c.held).map((c) => c.command);
  const refusal = wire.refusal("drive");
  // A silent connection may still transmit the request.
  const off = link.is === "connecting" || !!refusal || !commands.length;
  const names = commands.map((c) => c.command);
  const why = refusal ?? (!commands.length ? none : `Takes authority over ${plural(names.length, "command")}: ${names.join(", ")}`);
  return (
    <span class="stop-all">
      {error && (
        <span class="error" role="alert">
          {error} <button class="link" onClick={clear}>Dismiss</button>
        </span>
      )}
      {lost.length > 0 && <span class="error" role="alert">Stop is not in force; retrying: {lost.join(", ")}</span>}
      {wanted.length > 0 && (
        <button disabled={off || busy} onClick={release} title={`Releases ${wanted.map((c) => c.command).join(", ")}`}>
          Release
        </button>
      )}
      {!commands.length && link.is !== "connecting" && <span class="dim opt">{none}</span>}
      <button class="stop" disabled={off} title={why} onClick={stop}>
        {commands.length > 0 && commands.every((c) => c.held) ? "Stopped" : "Stop"}
      </button>
    </span>
  );
}
