// Small parts that many views use.

import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { href } from "../router";
import * as units from "../units";
import { wire } from "../wire/socket";
import type { LossCounts, Role } from "../wire/types";

/** The header of a view: its title, a note, and controls on the right; if its changes are refused, the reason. */
export function Head({ title, note, changes, children }: { title: ComponentChildren; note?: ComponentChildren; changes?: Role; children?: ComponentChildren }) {
  const refusal = changes && wire.refusal(changes);
  return (
    <>
      <div class="head">
        <h1>{title}</h1>
        {note && <span class="dim">{note}</span>}
        <span class="grow" />
        {children}
      </div>
      {refusal && <p class="note">{refusal}</p>}
    </>
  );
}

export function Panel({ title, tools, children, class: more }: { title?: ComponentChildren; tools?: ComponentChildren; children: ComponentChildren; class?: string }) {
  return (
    <section class={`panel ${more ?? ""}`}>
      {title !== undefined && (
        <div class="panel-head">
          <h2>{title}</h2>
          <span class="grow" />
          {tools}
        </div>
      )}
      {children}
    </section>
  );
}

/** A figure with its name, as in a row of an overview. */
export function Stat({ name, value, note, tone, to }: { name: string; value: ComponentChildren; note?: ComponentChildren; tone?: "bad" | "warn" | "ok"; to?: string }) {
  const inside = (
    <>
      <span class="stat-name">{name}</span>
      <span class={`stat-value ${tone ?? ""}`}>{value}</span>
      {note && <span class="stat-note">{note}</span>}
    </>
  );
  return to ? <a class="stat" href={to}>{inside}</a> : <div class="stat">{inside}</div>;
}

/** A text filter; the key `/` focuses it. */
export function Filter({ value, set, label }: { value: string; set(text: string): void; label: string }) {
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => {
    const to_it = (event: KeyboardEvent) => {
      const at = event.target as HTMLElement;
      const writes = at.matches("textarea, select, input:not([type=range]):not([type=checkbox])");
      if (event.key !== "/" || event.ctrlKey || event.metaKey || writes) return;
      event.preventDefault();
      input.current?.focus();
      input.current?.select();
    };
    addEventListener("keydown", to_it);
    return () => removeEventListener("keydown", to_it);
  }, []);
  return (
    <input
      ref={input}
      type="search"
      class="filter"
      placeholder={`${label}  ( / )`}
      aria-label={label}
      value={value}
      onInput={(event) => set(event.currentTarget.value)}
      onKeyDown={(event) => event.key === "Escape" && (set(""), event.currentTarget.blur())}
    />
  );
}

/** A text with commands between backticks. */
export function CodeText({ text }: { text: string }) {
  return <>{text.split("`").map((part, i) => (i % 2 ? <code key={i}>{part}</code> : part))}</>;
}

export function total(lost: LossCounts): number {
  return lost.overrun + lost.link + lost.restart + lost.detached;
}

/** Total losses with their causes, and the most recent losses. */
export function LossCount({ lost, now = 0 }: { lost: LossCounts; now?: number }) {
  const all = total(lost);
  if (all === 0) return <span class="dim">0</span>;
  const causes = Object.entries(lost).filter(([, n]) => n > 0).map(([cause, n]) => `${cause} ${units.count(n)}`);
  return (
    <span class={now > 0 ? "bad" : "warn"} title={causes.join(", ")}>
      {units.count(all)}
      {now > 0 && <span class="plus"> +{units.count(now)}</span>}
    </span>
  );
}

export function TopicLink({ name }: { name: string }) {
  return <a href={href("topics", name)}>{name}</a>;
}

export function NodeLink({ name }: { name: string }) {
  return <a href={href("nodes", name)}>{name}</a>;
}

export function ErrorMessage({ text, clear }: { text: string | null | undefined; clear?(): void }) {
  if (!text) return null;
  return (
    <p class="error" role="alert">
      {text} {clear && <button class="link" onClick={clear}>Dismiss</button>}
    </p>
  );
}

/** A button that asks for confirmation before an irreversible action. */
export function ConfirmButton({ children, ask, act, disabled, label }: { children: ComponentChildren; ask: string; act(): void; disabled?: boolean; label?: string }) {
  const [asked, set] = useState(false);
  useEffect(() => {
    if (!asked) return;
    const timer = setTimeout(() => set(false), 4000);
    return () => clearTimeout(timer);
  }, [asked]);
  return (
    <button
      class={asked ? "danger" : ""}
      disabled={disabled}
      aria-label={asked ? undefined : label}
      onBlur={() => set(false)}
      onClick={() => {
        set(!asked);
        if (asked) act();
      }}
    >
      {asked ? ask : children}
    </button>
  );
}

export function State({ word }: { word: string }) {
  const tone = /^(gone|failed|lost|refused|closed|fallback_failed|no_answer)$/.test(word) ? "bad" : /^(stopped|ended|fallback|connecting|unknown)$/.test(word) ? "warn" : /^(runs|started|ready|connected|in_force)$/.test(word) ? "ok" : "";
  return (
    <span class={`state ${tone}`}>
      <span class="dot" aria-hidden="true" />
      {word.replace(/_/g, " ")}
    </span>
  );
}

/** What a view shows before its first data. */
export function Waiting({ error, what }: { error?: { message: string } | null; what: string }) {
  return error ? <ErrorMessage text={error.message} /> : <p class="empty dim">Waiting for {what}…</p>;
}
