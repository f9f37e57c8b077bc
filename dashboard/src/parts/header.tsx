// The permanent header: the domain, the connection state, and the Stop button.

import { useState } from "preact/hooks";
import { useDomain, useHost } from "../domain";
import { href } from "../router";
import { set_theme, theme, type Theme } from "../theme";
import { wire } from "../wire/socket";
import { useConnectionState } from "../wire/use";
import { Icon } from "./icons";
import { StopAll } from "./stop";

export function Header({ menu, toggle_menu }: { menu: boolean; toggle_menu(): void }) {
  const hello = wire.hello;
  const host = useHost();
  return (
    <header class="top">
      <button class="quiet menu" aria-expanded={menu} aria-controls="nav" aria-label="Menu" onClick={toggle_menu}>
        <Icon name="menu" />
      </button>
      <a class="brand" href={href("overview")}>
        <Icon name="logo" />
        <span>robot-net</span>
      </a>
      <ConnectionStatus />
      {hello && (
        <span class="where">
          <span class="dim">domain</span> <b>{hello.domain}</b>
          <span class="dim opt"> on </span>
          <b class="opt">{host}</b>
          {hello.read_only && <span class="tag">read-only</span>}
          {hello.token !== null && (
            <a class="tag" href="/login" title={`Signed in with the token ${hello.token}, role ${hello.role}; sign in with another one`}>
              {hello.role}
            </a>
          )}
        </span>
      )}
      <span class="grow" />
      <StopAll />
      <ThemeButton />
    </header>
  );
}

function ConnectionStatus() {
  const link = useConnectionState();
  const { figures } = useDomain();
  const live = link.is === "open" && figures !== null;
  const word = live ? "live" : link.is === "connecting" ? "not connected" : link.is === "silent" ? "no data" : "waiting";
  return (
    <span class={live ? "live" : "live off"} role="status">
      <span class="dot" aria-hidden="true" />
      {word}
    </span>
  );
}

const NEXT: Record<Theme, Theme> = { auto: "light", light: "dark", dark: "auto" };

function ThemeButton() {
  const [now, set] = useState(theme());
  const next = NEXT[now];
  const says = `Colours: ${now === "auto" ? "as the system" : now}. Change to ${next === "auto" ? "as the system" : next}`;
  return (
    <button
      class="quiet"
      aria-label={says}
      title={says}
      onClick={() => {
        set_theme(next);
        set(next);
      }}
    >
      <Icon name={now === "auto" ? "auto" : now === "light" ? "sun" : "moon"} />
    </button>
  );
}
