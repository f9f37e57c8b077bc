// Types of the server's messages, as in docs/design/dashboard.md. Field names are those of the protocol.

/** What a token allows; each role includes those before it. */
export const ROLES = ["look", "operate", "drive"] as const;
export type Role = (typeof ROLES)[number];

export interface Hello {
  protocol: number;
  version: string;
  domain: string;
  host: string;
  read_only: boolean;
  /** The name of the page's token; null without tokens, or with the token of the command line. */
  token: string | null;
  role: Role;
  limits: Record<string, number>;
}

export interface LossCounts {
  overrun: number;
  link: number;
  restart: number;
  detached: number;
}

export interface TopicEndpoint {
  node: string;
  qos: string;
  rate_hz: number;
  lost: LossCounts;
  behind: { messages: number; age_ns: number };
}

export interface NodeRow {
  node: string;
  host: string;
  pid: number | null;
  state: string;
  cpu: number | null;
  rss_bytes: number | null;
  uptime_s: number | null;
  restarts: number | null;
  sent_hz: number;
  received_hz: number;
  publishes: string[];
  subscribes: string[];
}

export interface TopicRow {
  topic: string;
  types: string[];
  lane: string | null;
  publishers: TopicEndpoint[];
  subscribers: TopicEndpoint[];
  rate_hz: number;
  bytes_per_s: number;
  latency: { p50_ns: number | null; p99_ns: number | null; max_ns: number | null };
  lost: LossCounts;
  lost_in_interval: number;
  missed_in_interval: number;
  skipped_in_interval: number;
  behind: { messages: number; age_ns: number };
  memory_bytes: number;
}

export interface HostRow {
  host: string;
  state: string;
  round_trip_s: number | null;
  clock_offset_s: number | null;
  clock_offset_uncertainty_s: number | null;
  in_bytes_per_s: number;
  out_bytes_per_s: number;
  lost: number;
  held_back: string[];
}

export interface Problem {
  level: string;
  check: string;
  what: string;
  advice: string | null;
}

export interface Mismatch {
  topic: string;
  publisher: string;
  subscriber: string;
  why: string;
}

export interface GoneNode {
  node: string;
  host: string;
  since_s: number;
}

export interface Figures {
  at_s: number;
  interval_s: number;
  domain: string;
  host: string;
  exists: boolean;
  nodes: NodeRow[];
  topics: TopicRow[];
  hosts: HostRow[];
  insecure: string | null;
  problems: Problem[];
  mismatches: Mismatch[];
  gone: GoneNode[];
}

/** One column per figure; `hist` contains [low ns, high ns, count] of the non-empty buckets. */
export interface History {
  t_s: number[];
  rate_hz: number[];
  bytes_per_s: number[];
  p50_ns: (number | null)[];
  p99_ns: (number | null)[];
  max_ns: (number | null)[];
  lost: number[];
  missed: number[];
  skipped: number[];
  hist?: [number, number, number][];
}

export interface PlotData {
  t_s: number[];
  min: number[];
  max: number[];
  last: number[];
  n: number[];
  missing?: number;
  why?: string;
  lost?: number;
  unit?: string;
}

export interface Message {
  node: string;
  seq: number;
  sent_s: number;
  type: string;
  len: number;
  json?: Json;
  /** Units of the fields of `json` by path, with `[]` for list elements. */
  units?: Record<string, string>;
  hex?: string;
  meta?: Record<string, Json>;
  truncated?: boolean;
}

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

export interface StateEntry {
  key: string;
  type: string;
  value: Json;
  revision: number;
  version: number;
  node: string | null;
  written_s: number | null;
  durable: boolean;
  ttl_s: number | null;
  last_will: boolean;
}

export interface StateData {
  whole?: boolean;
  entries: StateEntry[];
  deleted?: string[];
  revision?: number;
  more?: number;
  /** The other host does not answer; the values were current at `known_s`. */
  away?: boolean;
  known_s?: number;
}

export interface Param {
  node: string;
  name: string;
  key: string;
  value: Json;
  declared?: boolean;
  is_default?: boolean;
  type?: string | null;
  default?: Json;
  min?: number | null;
  max?: number | null;
  choices?: string[] | null;
  unit?: string | null;
  description?: string | null;
  read_only?: boolean;
  durable?: boolean;
  set_by?: string | null;
  written_s?: number | null;
  problem?: string | null;
}

export interface LogLine {
  time_s: number;
  level: string;
  node: string;
  name: string;
  message: string;
  file: string;
  line: number;
}

export interface Command {
  command: string;
  receiver: string | null;
  state: string;
  reason: string | null;
  driver: string | null;
  priority: number | null;
  lease_ns: number | null;
  deadline_ns: number | null;
  applied?: number;
  ignored?: number;
  fallbacks?: number;
  /** The receiver's fallback failed when it was last executed. */
  fallback_failed?: boolean;
  /** This dashboard has authority. */
  held: boolean;
  /** This dashboard is to stop the command, and takes authority again whenever it is lost. */
  stop_wanted: boolean;
}

export interface AuditLine {
  time_s: number;
  receiver: string;
  kind: string;
  node: string;
  priority: number | null;
  number: string | null;
  text: string;
}

export interface Service {
  service: string;
  kind: "service" | "action";
  nodes: string[];
  clients: number;
  request: string | null;
  reply: string | null;
  feedback: string | null;
}

export interface Field {
  name: string;
  type: string;
  doc?: string | null;
  default?: Json;
  list?: boolean | number;
  map?: boolean;
  oneof?: string | null;
  values?: { name: string; number: number }[];
  message_type?: string;
  fields?: Field[];
}

export interface Form {
  type: string;
  kind: string;
  fields?: Field[];
}

export interface RecordData {
  recording: {
    file: string;
    seconds: number;
    messages: number;
    bytes: number;
    missing: number;
    /** Publishers that it saw but could not read. */
    unheard: number;
    problem?: string | null;
  } | null;
  blackbox: Record<string, Json> | null;
  playing?: Playing | null;
  /** The recordings in the folder, the newest first. */
  files?: RecordedFile[];
  folder?: string | null;
  /** Why the folder is not writable. */
  folder_problem?: string | null;
}

export interface RecordedFile {
  name: string;
  bytes: number;
  modified_s: number;
}

/** The current or the last playback. */
export interface Playing {
  name: string;
  at_s: number;
  length_s: number;
  paused: boolean;
  is_over: boolean;
  /** Messages published; set when playback is over. */
  played: number | null;
  problem: string | null;
}

export interface Launched {
  node: string;
  file: string;
  pid: number | null;
  state: string;
  restarts: number;
  started_s: number | null;
  end: string | null;
}

export interface Frame {
  frame: string;
  parent: string;
  translation: [number, number, number];
  rotation: [number, number, number, number];
  sent_s: number;
  node: string;
}

/** The values of the brightest and the darkest pixels of a depth or 16-bit image. */
export interface Scale {
  bright: number;
  dark: number;
  unit: string;
}

export interface ImageData_ {
  /** `null` for compressed images, which contain it. */
  width: number | null;
  height: number | null;
  full_width: number | null;
  full_height: number | null;
  encoding: string;
  /** The pixel encoding of a raw image. */
  pixels?: string;
  scale?: Scale;
  frame_id: string;
  node: string;
  seq: number;
  sent_s: number;
}

export interface CloudData {
  points: number;
  total_points: number;
  fields: string[];
  frame_id: string;
  node: string;
  seq: number;
  sent_s: number;
}

export interface ScanData {
  ranges: number;
  angle_min: number;
  angle_max: number;
  frame_id: string;
  node: string;
  seq: number;
  sent_s: number;
}
