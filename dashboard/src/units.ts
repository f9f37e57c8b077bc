// Formats figures: three digits, a unit, and a dash for unknown values.

const DASH = "–";

function three(value: number): string {
  const size = Math.abs(value);
  if (size >= 100) return value.toFixed(0);
  if (size >= 10) return value.toFixed(1);
  return value.toFixed(2);
}

function scaled(value: number, base: number, units: string[]): string {
  let at = 0;
  let rest = value;
  while (Math.abs(rest) >= base * 0.9995 && at < units.length - 1) {
    rest /= base;
    at += 1;
  }
  return `${at === 0 && Number.isInteger(rest) ? rest : three(rest)} ${units[at]}`;
}

export function rate(hz: number | null | undefined): string {
  if (hz == null) return DASH;
  if (hz === 0) return "0 Hz";
  return scaled(hz, 1000, ["Hz", "kHz", "MHz", "GHz"]);
}

export function bytes(count: number | null | undefined): string {
  if (count == null) return DASH;
  return scaled(Math.round(count), 1000, ["B", "kB", "MB", "GB", "TB"]);
}

export function bandwidth(bytes_per_s: number | null | undefined): string {
  return bytes_per_s == null ? DASH : `${bytes(bytes_per_s)}/s`;
}

export function duration_ns(ns: number | null | undefined): string {
  if (ns == null) return DASH;
  return scaled(Math.round(ns), 1000, ["ns", "µs", "ms", "s"]);
}

export function duration_s(s: number | null | undefined): string {
  if (s == null) return DASH;
  if (Math.abs(s) < 60) return duration_ns(s * 1e9);
  return span(s);
}

/** A duration in the two largest units: `3 min 20 s`. */
export function span(s: number | null | undefined): string {
  if (s == null) return DASH;
  const whole = Math.max(0, Math.floor(s));
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  if (whole < 86_400) return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
  return `${Math.floor(whole / 86_400)} d ${Math.floor((whole % 86_400) / 3600)} h`;
}

export function count(n: number | null | undefined): string {
  if (n == null) return DASH;
  // A thin space between groups of three digits, as SI specifies; short numbers need none.
  return n < 10_000 ? String(n) : String(Math.round(n)).replace(/\B(?=(\d{3})+$)/g, "\u2009");
}

export function percent(part: number | null | undefined): string {
  return part == null ? DASH : `${(part * 100).toFixed(part < 0.0995 ? 1 : 0)} %`;
}

/** Numbers outside this range are written with exponents. */
const PLAIN = { most: 1e21, least: 1e-12 };

/** A number of a message: integers in full, others with six decimals, or four significant digits if small. */
export function number(value: number): string {
  const size = Math.abs(value);
  if (size >= PLAIN.most || (size > 0 && size < PLAIN.least)) return value.toExponential(4);
  if (Number.isInteger(value)) return String(value);
  const behind = size < 1e-3 ? 3 - Math.floor(Math.log10(size)) : 6;
  return value.toFixed(behind).replace(/\.?0+$/, "");
}

/** The same with four digits, for changing values; integers stay integers. */
export function brief(value: number): string {
  return number(Number.isInteger(value) ? value : Number(value.toPrecision(4)));
}

/** A time in ns as a date (if it is a time since 1970) or a duration; `null` below 1 µs. */
export function time_ns(ns: number): string | null {
  if (ns >= 1e18 && ns < 1e19) return `${DATE.format(new Date(ns / 1e6))} ${clock(ns / 1e9, true)}`;
  return Math.abs(ns) >= 1000 ? duration_ns(ns) : null;
}

const DATE = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", year: "numeric" });
const CLOCK = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });

export function clock(at_s: number | null | undefined, millis = false): string {
  if (at_s == null) return DASH;
  const at = new Date(at_s * 1000);
  const ms = String(at.getMilliseconds()).padStart(3, "0");
  return millis ? `${CLOCK.format(at)}.${ms}` : CLOCK.format(at);
}

/** Date and time. */
export function date_clock(at_s: number): string {
  return `${DATE.format(new Date(at_s * 1000))} ${clock(at_s)}`;
}

export function plural(n: number, one: string, many = `${one}s`): string {
  return `${count(n)} ${n === 1 ? one : many}`;
}
