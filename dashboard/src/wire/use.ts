// Hooks for server data in components. Data arrives at any rate; components are rendered at most four times a
// second, all together, so that the page is not laid out for each subscription.

import { useEffect, useReducer, useRef, useState } from "preact/hooks";
import { wire, WireError, type Handlers, type ConnectionState } from "./socket";

const TICK_MS = 250;

const due = new Set<() => void>();
let timer = 0;
let last_tick = 0;

/** Calls `draw` at the next tick; only once, even if it is requested several times. */
export function at_next_tick(draw: () => void): void {
  due.add(draw);
  if (timer) return;
  const wait = Math.max(0, last_tick + TICK_MS - performance.now());
  timer = window.setTimeout(() => requestAnimationFrame(tick), wait);
}

function tick(): void {
  timer = 0;
  last_tick = performance.now();
  const now = [...due];
  due.clear();
  for (const draw of now) draw();
}

/** Two functions that render the component again: at the next tick, and immediately. */
function useTick(): [() => void, () => void] {
  const [, draw] = useReducer((n: number) => n + 1, 0);
  const again = useRef(() => draw(undefined)).current;
  useEffect(() => () => void due.delete(again), []);
  return useRef<[() => void, () => void]>([() => at_next_tick(again), again]).current;
}

export interface Subscribed<T> {
  data: T | null;
  error: WireError | null;
}

/**
 * The newest data of a subscription, or the result of `fold`. With `null`, it does not subscribe. The
 * subscription ends with the component, so a hidden view costs nothing.
 */
export function useSub<T>(
  ask: Record<string, unknown> | null,
  fold?: (old: T | null, data: any, payload: ArrayBuffer | null) => T,
  urgent?: (old: T | null, now: T) => boolean,
): Subscribed<T> {
  const [draw, draw_now] = useTick();
  const now = useRef<Subscribed<T>>({ data: null, error: null });
  const key = JSON.stringify(ask);
  useEffect(() => {
    now.current = { data: null, error: null };
    draw();
    if (!ask) return;
    return wire.subscribe(ask, {
      data(data, payload) {
        const old = now.current.data;
        const next: T = fold ? fold(old, data, payload) : data;
        now.current.data = next;
        if (urgent?.(old, next)) draw_now();
        else draw();
      },
      error(error) {
        if (error === null && now.current.error === null) return;
        now.current.error = error;
        draw();
      },
      restart() {
        // Data from before the connection was lost may be outdated.
        now.current = { data: null, error: null };
        draw();
      },
    });
  }, [key]);
  return now.current;
}

/** A subscription whose data the caller draws itself, for example on a canvas. */
export function useStream(ask: Record<string, unknown> | null, handlers: Handlers): void {
  const current = useRef(handlers);
  current.current = handlers;
  const key = JSON.stringify(ask);
  useEffect(() => {
    if (!ask) return;
    return wire.subscribe(ask, {
      data: (data, payload, drawn) => current.current.data(data, payload, drawn),
      error: (error) => current.current.error?.(error),
      restart: () => current.current.restart?.(),
    });
  }, [key]);
}

export function useConnectionState(): ConnectionState {
  const [, draw] = useReducer((n: number) => n + 1, 0);
  useEffect(() => wire.on_connection_state(() => draw(undefined)), []);
  return wire.link;
}

/** The state of the last request: idle, busy, or an error text. */
export function useRequest(): {
  busy: boolean;
  error: string | null;
  run(op: string, fields?: Record<string, unknown>): Promise<any>;
  clear(): void;
} {
  const [state, set] = useState<{ busy: boolean; error: string | null }>({ busy: false, error: null });
  return {
    ...state,
    clear: () => set({ busy: false, error: null }),
    async run(op, fields) {
      set({ busy: true, error: null });
      try {
        const answer = await wire.request(op, fields);
        set({ busy: false, error: null });
        return answer;
      } catch (error) {
        set({ busy: false, error: (error as Error).message });
        return null;
      }
    },
  };
}
