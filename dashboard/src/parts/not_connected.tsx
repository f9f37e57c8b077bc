// Shows that the data is stale, how old it is, and when the page reconnects.

import { useEffect, useReducer, useState } from "preact/hooks";
import { clock, span } from "../units";
import { wire } from "../wire/socket";
import { useConnectionState } from "../wire/use";

/** The page may still reach the server although no data arrives. */
const SILENT = "Stop may still arrive, but this page cannot confirm it; all other controls do not work.";

export function NotConnected() {
  const link = useConnectionState();
  const [, draw] = useReducer((n: number) => n + 1, 0);
  useEffect(() => {
    if (link.is === "open") return;
    const timer = setInterval(() => draw(undefined), 500);
    return () => clearInterval(timer);
  }, [link.is]);
  // The first half second of a page is not a failure.
  const [young, set_young] = useState(true);
  useEffect(() => {
    const timer = setTimeout(() => set_young(false), 700);
    return () => clearTimeout(timer);
  }, []);
  if (link.is === "open" || (young && wire.last_ms === 0)) return null;

  const last = wire.last_ms ? wire.last_ms / 1000 : null;
  const old = last === null ? "Nothing has been received yet." : `The data shown is from ${clock(last)}, ${span(Date.now() / 1000 - last)} ago.`;
  const title = link.is === "silent" ? "No data from the server" : "Not connected";
  const again = link.is === "connecting" && link.again_at ? Math.ceil((link.again_at - Date.now()) / 1000) : 0;
  return (
    <div class="banner" role="alert">
      <div>
        <strong>{title}.</strong> {old} {link.is === "silent" ? SILENT : "Stop and all other controls do not work."}
        {link.is === "connecting" && link.why && <span> The server said: {link.why}.</span>}
        <div class="dim">
          {last !== null && link.is !== "silent" && <>Is <code>rnet dashboard</code> still running? </>}
          {again > 0 ? `Trying again in ${again} s.` : "Trying again…"}
        </div>
      </div>
      <button onClick={() => wire.retry_now()}>Try now</button>
      <SignedOut />
    </div>
  );
}

/** The session may have expired while the page was open: then only a new login helps. */
function SignedOut() {
  const [out, set] = useState(false);
  useEffect(() => {
    let alive = true;
    const ask = async () => {
      try {
        const answer = await fetch("/healthz");
        if (alive) set([401, 429].includes(answer.status));
      } catch {
        // Unreachable: the banner already shows it.
      }
    };
    ask();
    const timer = setInterval(ask, 5000);
    return () => {
      alive = false;
      clearInterval(timer);
    };
  }, []);
  return out ? (
    <button class="primary" onClick={() => location.reload()}>
      Sign in again
    </button>
  ) : null;
}
