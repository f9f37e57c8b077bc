// Light and dark theme: that of the system, unless the user has selected one.

export type Theme = "auto" | "light" | "dark";

const KEY = "rnet.theme";
const listeners = new Set<() => void>();

export function theme(): Theme {
  const kept = localStorage.getItem(KEY);
  return kept === "light" || kept === "dark" ? kept : "auto";
}

export function set_theme(next: Theme): void {
  if (next === "auto") localStorage.removeItem(KEY);
  else localStorage.setItem(KEY, next);
  apply();
}

function apply(): void {
  const now = theme();
  if (now === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = now;
  cache.clear();
  for (const listener of listeners) listener();
}

/** Calls `listener` when colours have changed, because canvases must be redrawn. */
export function on_theme(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

const cache = new Map<string, string>();

/** A palette colour in a format for canvases. */
export function colour(name: string): string {
  let value = cache.get(name);
  if (value === undefined) {
    // light-dark() is resolved only in a colour property, not in a custom property.
    const probe = document.createElement("span");
    probe.style.color = `var(--${name})`;
    document.body.append(probe);
    value = getComputedStyle(probe).color;
    probe.remove();
    cache.set(name, value);
  }
  return value;
}

/** The same colour with an opacity of 0 to 1. */
export function faint(name: string, opacity: number): string {
  return colour(name).replace(/^rgba?\(([^,]+),([^,]+),([^,)]+).*$/, `rgba($1,$2,$3,${opacity})`);
}

export function start_theme(): void {
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", apply);
  apply();
}
