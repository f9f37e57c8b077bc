// The connection to the server: requests with answers, and subscriptions that survive a reconnection.
//
// The page must never show stale data as current, so this tracks three things: whether the socket is open,
// whether data has arrived recently, and when the next attempt to connect is.

import { ROLES, type Hello, type Role } from "./types";

export type ConnectionState =
  | { is: "connecting"; since: number; why: string | null; again_at: number | null }
  | { is: "open"; since: number }
  /** The socket is open, but no data arrives. */
  | { is: "silent"; since: number };

export class WireError extends Error {
  constructor(readonly code: string, message: string) {
    super(message);
  }
}

export interface Handlers {
  /** For subscriptions with `ack`, `drawn` must be called after drawing; the server then sends more. */
  data(data: any, payload: ArrayBuffer | null, drawn: () => void): void;
  /** `null` means that the last error is resolved, as far as known. */
  error?(error: WireError | null): void;
  /** The subscription has restarted: new data does not continue earlier data. */
  restart?(): void;
}

interface Sub {
  ask: Record<string, unknown>;
  handlers: Handlers;
  id: number;
}

interface Pending {
  resolve(answer: any): void;
  reject(error: WireError): void;
  more?: (part: any) => void;
}

/** Figures arrive at least every 0.5 s; without data for this long, the connection is silent. */
const SILENT_AFTER_MS = 2500;
const GIVE_UP_SILENT_MS = 12_000;
const PAUSES_MS = [250, 500, 1000, 2000, 4000, 5000];

export class Wire {
  hello: Hello | null = null;
  link: ConnectionState = { is: "connecting", since: Date.now(), why: null, again_at: null };
  /** When data last arrived, by this machine's clock. */
  last_ms = 0;
  /** Offset of the server's wall clock from this machine's. */
  clock_ahead_s = 0;
  private socket: WebSocket | null = null;
  private next_id = 1;
  private tries = 0;
  private timer = 0;
  private subs = new Set<Sub>();
  private by_id = new Map<number, Sub>();
  private pending = new Map<number, Pending>();
  private listeners = new Set<() => void>();

  constructor(private url: string) {}

  start(): void {
    this.connect();
    setInterval(() => this.check_silence(), 500);
    addEventListener("online", () => this.retry_now());
  }

  on_connection_state(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  retry_now(): void {
    if (this.link.is === "connecting" && this.socket === null) this.connect();
  }

  /** Subscribes until the returned function is called. */
  subscribe(ask: Record<string, unknown>, handlers: Handlers): () => void {
    const sub: Sub = { ask, handlers, id: 0 };
    this.subs.add(sub);
    if (this.hello) this.send_sub(sub);
    return () => {
      this.subs.delete(sub);
      if (sub.id && this.by_id.delete(sub.id)) this.request("unsub", { sub: sub.id }).catch(() => {});
    };
  }

  /** Sends a request; the promise is rejected with a `WireError`. */
  request(op: string, fields: Record<string, unknown> = {}, more?: (part: any) => void): Promise<any> {
    return this.start_request(op, fields, more).answer;
  }

  /** The same, but also returns the id, with which a call can be cancelled. */
  start_request(
    op: string,
    fields: Record<string, unknown>,
    more?: (part: any) => void,
  ): { id: number; answer: Promise<any> } {
    const id = this.next_id++;
    const answer = new Promise<any>((resolve, reject) => {
      if (this.socket?.readyState !== WebSocket.OPEN || !this.hello) {
        reject(new WireError("not_connected", "not connected: nothing was sent"));
        return;
      }
      this.pending.set(id, { resolve, reject, more });
      this.socket.send(JSON.stringify({ id, op, ...fields }));
    });
    return { id, answer };
  }

  /** Why the server would refuse what needs this role, or null. */
  refusal(needed: Role): string | null {
    if (!this.hello) return null;
    const { read_only, role, token } = this.hello;
    if (read_only) return "The dashboard is read-only.";
    if (ROLES.indexOf(role) >= ROLES.indexOf(needed)) return null;
    return `The token ${token} has the role ${role}; this needs the role ${needed}.`;
  }

  /** The server's wall clock, in s since 1970. */
  now_s(): number {
    return Date.now() / 1000 + this.clock_ahead_s;
  }

  private set(link: ConnectionState): void {
    this.link = link;
    for (const listener of this.listeners) listener();
  }

  private connect(): void {
    clearTimeout(this.timer);
    const socket = new WebSocket(this.url);
    socket.binaryType = "arraybuffer";
    this.socket = socket;
    socket.onmessage = (event) => this.socket === socket && this.receive(event.data);
    socket.onclose = (event) => this.socket === socket && this.closed(event.reason || null);
  }

  private closed(why: string | null): void {
    this.socket = null;
    const was_open = this.hello !== null;
    this.hello = null;
    this.by_id.clear();
    for (const sub of this.subs) sub.id = 0;
    for (const { reject } of this.pending.values()) {
      reject(new WireError("not_connected", "the connection was lost: the request may or may not have been executed"));
    }
    this.pending.clear();
    if (was_open) this.tries = 0;
    const pause = PAUSES_MS[Math.min(this.tries++, PAUSES_MS.length - 1)]!;
    const since = was_open || this.link.is !== "connecting" ? Date.now() : this.link.since;
    this.timer = window.setTimeout(() => this.connect(), pause);
    this.set({ is: "connecting", since, why, again_at: Date.now() + pause });
  }

  private check_silence(): void {
    if (!this.hello) return;
    const quiet = Date.now() - this.last_ms;
    if (quiet > GIVE_UP_SILENT_MS) {
      const socket = this.socket;
      this.closed("no data for 12 s");
      socket?.close();
    } else if (quiet > SILENT_AFTER_MS && this.link.is === "open") {
      this.set({ is: "silent", since: this.last_ms });
    }
  }

  private receive(frame: string | ArrayBuffer): void {
    this.last_ms = Date.now();
    if (this.link.is === "silent") this.set({ is: "open", since: this.last_ms });
    if (typeof frame === "string") this.take(JSON.parse(frame), null);
    else {
      const length = new DataView(frame).getUint32(0, true);
      const text = new TextDecoder().decode(new Uint8Array(frame, 4, length));
      this.take(JSON.parse(text), frame.slice(4 + length));
    }
  }

  private take(message: any, payload: ArrayBuffer | null): void {
    if (message.hello) this.greet(message.hello);
    else if (message.re !== undefined) this.answer(message);
    else if (message.sub !== undefined) {
      const sub = this.by_id.get(message.sub);
      if (!sub) return;
      if (message.error) sub.handlers.error?.(new WireError(message.error.code, message.error.message));
      else {
        sub.handlers.error?.(null);
        sub.handlers.data(message.data, payload, () => this.acknowledge(message.sub, sub));
      }
    }
  }

  private acknowledge(id: number, sub: Sub): void {
    // Data of an earlier connection cannot be acknowledged.
    if (sub.id === id && this.hello) this.socket?.send(JSON.stringify({ ack: id }));
  }

  private greet(hello: Hello): void {
    this.hello = hello;
    this.set({ is: "open", since: Date.now() });
    for (const sub of this.subs) {
      sub.handlers.restart?.();
      this.send_sub(sub);
    }
  }

  private send_sub(sub: Sub): void {
    const { id, answer } = this.start_request("sub", sub.ask);
    sub.id = id;
    this.by_id.set(id, sub);
    answer.catch((error: WireError) => {
      this.by_id.delete(id);
      if (error.code !== "not_connected") sub.handlers.error?.(error);
    });
  }

  private answer(message: any): void {
    const pending = this.pending.get(message.re);
    if (!pending) return;
    if (message.more) {
      pending.more?.(message);
      return;
    }
    this.pending.delete(message.re);
    if (message.ok) pending.resolve(message);
    else pending.reject(new WireError(message.error.code, message.error.message));
  }
}

const scheme = location.protocol === "https:" ? "wss:" : "ws:";
export const wire = new Wire(`${scheme}//${location.host}/ws`);
