// The mock robot: its data for subscriptions and its answers to requests.

/** A realistic long name. */
export const LONG = "/perception/front_left_camera_rectified_and_undistorted_point_cloud_segmentation";

const NODES = {
  "/imu": [["/imu"], []],
  "/lidar": [["/scan", "/cloud"], []],
  "/camera": [["/camera/image", "/camera/depth"], []],
  "/force": [["/contacts"], []],
  "/estimator": [["/state_estimate", "/tf"], ["/imu", "/contacts"]],
  "/map": [["/map/grid"], ["/scan", "/state_estimate", "/cloud"]],
  "/planner": [["/plan"], ["/map/grid", "/camera/image", "/state_estimate"]],
  "/controller": [["/motor_commands"], ["/plan", "/state_estimate"]],
  "/motors": [["/joint_states"], ["/motor_commands"]],
  "/safety": [["/stop"], ["/joint_states", "/imu", "/battery"]],
  "/battery": [["/battery"], []],
  [LONG]: [[`${LONG}/result`], []],
};
const RATES = { "/imu": [1000, 120, "foxglove.Imu"], "/scan": [20, 2900, "foxglove.LaserScan"], "/cloud": [10, 480_000, "rnet.msgs.PointCloud"], "/camera/image": [30, 921_600, "rnet.msgs.Image"], "/camera/depth": [15, 614_400, "sensor_msgs.msg.Image"], "/contacts": [500, 48, "demo.Contacts"], "/state_estimate": [500, 220, "demo.Estimate"], "/tf": [100, 160, "foxglove.FrameTransforms"], "/map/grid": [1, 65_000, "foxglove.Grid"], "/plan": [5, 900, "demo.Plan"], "/motor_commands": [500, 192, "demo.MotorCommands"], "/joint_states": [500, 300, "foxglove.JointStates"], "/stop": [0, 8, "demo.Stop"], "/battery": [1, 40, "foxglove.Battery"], [`${LONG}/result`]: [10, 90, "foxglove.Imu"] };

const now = () => Date.now() / 1000;
const wobble = (of) => of * (0.97 + 0.06 * Math.random());
const NO_LOSS = { overrun: 0, link: 0, restart: 0, detached: 0 };

export function robot({ topics = 0, no_figures = false, no_commands = false, more_nodes = () => ({}), hello = {} }) {
  const began = now();
  const params = [
    { node: "/controller", name: "/pid/gain", value: 2.5, type: "float", default: 1, min: 0, max: 10, unit: "1/s", description: "how hard the legs pull towards their target", declared: true, is_default: false, set_by: "/rnet_param_12" },
    { node: "/controller", name: "/pid/damping", value: 0.4, type: "float", default: 0.4, min: 0, max: 2, unit: "s", declared: true, is_default: true },
    { node: "/controller", name: "/gait", value: "trot", type: "str", default: "stand", choices: ["stand", "walk", "trot"], declared: true, is_default: false, set_by: "/planner" },
    { node: "/controller", name: "/limits", value: [1.2, 2.4, 2.4], type: "list[float]", default: [1, 2, 2], declared: true, is_default: false },
    { node: "/camera", name: "/odometer", value: 1234567.25, type: "float", default: 0, declared: true, is_default: false },
    { node: "/camera", name: "/exposure_us", value: 8000, type: "int", default: 8000, min: 100, max: 33000, unit: "µs", declared: true, is_default: true, durable: true },
    { node: "/camera", name: "/auto_exposure", value: true, type: "bool", default: true, declared: true, is_default: true },
    { node: "/gripper", name: "/force_limit", value: 12, type: "float", default: 10, min: 0, max: 40, unit: "N", description: "left by a node that does not run", declared: true, is_default: false },
    { node: "/camera", name: "/serial", value: "X-1204", type: "str", default: "", read_only: true, declared: true, is_default: false },
  ].map((p) => ({ key: `/params${p.node}${p.name}`, ...p }));
  const state = new Map(
    Object.entries({ "/arm/mode": ["str", "idle"], "/arm/calibration": ["json", { offset: [0.1, 0.2], at: "2026-11-20" }], "/arm/target/x": ["float", 0.25], "/arm/target/y": ["float", -0.5], "/mission/goal": ["str", "dock 3"], "/mission/waypoints_left": ["int", 7], "/battery/low": ["bool", false], [`${LONG}/mode`]: ["str", "on"] }).map(
      ([key, [type, value]], i) => [key, { key, type, value, revision: 100 + i, version: i + 1, node: "/planner", written_s: began - 60 * i, durable: i === 1, ttl_s: null, last_will: false }],
    ),
  );
  let held = false;
  let recording = null;
  let playing = null;
  const files = [["2026-11-24T06-00-00.mcap", 1_240_000_000], ["dock.mcap", 48_200_000]].map(([name, bytes], i) => ({ name, bytes, modified_s: began - 86_400 * (i + 1) }));
  let lost = 0;

  function figures() {
    const end = (node, topic, i) => ({ node, qos: i ? "best_effort keep_last 10" : "reliable keep_all", rate_hz: wobble(RATES[topic]?.[0] ?? 1000), lost: { ...NO_LOSS, overrun: topic === "/camera/image" && i ? lost : 0 }, behind: { messages: 0, age_ns: 0 } });
    if (Math.random() < 0.3) lost += 3;
    const names = topics ? Array.from({ length: topics }, (_x, i) => `/sensor_${String(i).padStart(3, "0")}`) : Object.keys(RATES);
    const list = names.map((topic) => {
      const [hz, size, type] = RATES[topic] ?? [1000, 120, "foxglove.Imu"];
      const rate = wobble(hz);
      const p50 = wobble(1800);
      return {
        topic, types: [type], lane: topic === "/stop" || topic === "/motor_commands" ? "urgent" : "bulk",
        publishers: topics ? [end("/sensors", topic, 0)] : Object.entries(NODES).filter(([, [out]]) => out.includes(topic)).map(([node]) => end(node, topic, 0)),
        subscribers: topics ? [end("/sink", topic, 1)] : Object.entries(NODES).filter(([, [, into]]) => into.includes(topic)).map(([node], i) => end(node, topic, i + 1)),
        rate_hz: rate, bytes_per_s: rate * size,
        latency: hz ? { p50_ns: p50, p99_ns: p50 * 9 * Math.random() + p50, max_ns: p50 * 40 * Math.random() + 9 * p50 } : { p50_ns: null, p99_ns: null, max_ns: null },
        lost: { ...NO_LOSS, overrun: topic === "/camera/image" ? lost : 0 }, lost_in_interval: topic === "/camera/image" && Math.random() < 0.3 ? 3 : 0, missed_in_interval: 0, skipped_in_interval: 0,
        behind: { messages: topic === "/map/grid" ? 1 : 0, age_ns: topic === "/map/grid" ? 4e6 : 0 }, memory_bytes: 16 * size + 65536,
      };
    });
    const up = now() - began;
    const dead = up > 20 && !topics ? "/force" : null;
    const nodes = Object.entries(topics ? { "/sensors": [names, []], "/sink": [[], names] } : { ...NODES, ...more_nodes() })
      .filter(([node]) => node !== dead)
      .map(([node, [publishes, subscribes]], i) => ({ node, host: "robot", pid: 4000 + i, state: node === "/map" ? "stopped" : "runs", cpu: wobble(0.02 + 0.03 * i), rss_bytes: wobble(24e6 + i * 3e6), uptime_s: up + 342, restarts: i % 4 ? 0 : null, sent_hz: 500, received_hz: 900, publishes, subscribes }));
    return {
      at_s: now(), interval_s: 0.5, domain: "0", host: "robot", exists: true, nodes, topics: list,
      hosts: [{ host: "base", state: "connected", round_trip_s: 0.0012, clock_offset_s: 12.5, clock_offset_uncertainty_s: 0.00004, in_bytes_per_s: 120_000, out_bytes_per_s: 3_400_000, lost: 0, held_back: [] }],
      problems: topics ? [] : [{ level: "problem", check: "behind", what: "/planner falls behind on /camera/image and loses 6 messages a second", advice: "subscribe with `latest`, or give the planner a thread of its own" }],
      mismatches: [], gone: dead ? [{ node: dead, host: "robot", since_s: began + 20 }] : [],
    };
  }

  /** A topic without subscribers has no latencies. */
  function point(t, topic) {
    if (topic === "/stop") return { t_s: [t], rate_hz: [0], bytes_per_s: [0], p50_ns: [null], p99_ns: [null], max_ns: [null], lost: [0], missed: [0], skipped: [0] };
    const p50 = 1500 + 600 * Math.sin(t / 7) + 200 * Math.random();
    return { t_s: [t], rate_hz: [1000 + 20 * Math.sin(t)], bytes_per_s: [120_000], p50_ns: [p50], p99_ns: [p50 * (3 + 2 * Math.random())], max_ns: [p50 * (8 + 20 * Math.random())], lost: [Math.random() < 0.06 ? 4 : 0], missed: [0], skipped: [Math.random() < 0.1 ? 2 : 0] };
  }
  function hist() {
    return Array.from({ length: 26 }, (_x, i) => { const low = 800 * 1.3 ** i; return [low, low * 1.3, Math.round(900 * Math.exp(-(((i - 5) / 3) ** 2)) + (i > 14 ? Math.random() * 3 : 0))]; }).filter((b) => b[2]);
  }

  const kinds = {
    figures: (r) => ({ each_ms: r.interval_ms ?? 500, next: no_figures ? () => null : figures }),
    history: (r) => {
      let first = true;
      return { each_ms: 500, next() {
        const points = first ? Array.from({ length: 200 }, (_x, i) => point(now() - (200 - i) / 2, r.topic)) : [point(now(), r.topic)];
        first = false;
        const all = {};
        for (const key of Object.keys(points[0])) all[key] = points.flatMap((p) => p[key]);
        return { ...all, hist: r.topic === "/stop" ? [] : hist() };
      } };
    },
    plot: (r) => {
      let last = now();
      const phase = r.field.length + r.field.charCodeAt(r.field.length - 1);
      return { each_ms: 100, next() {
        const out = { t_s: [], min: [], max: [], last: [], n: [], unit: /acceleration/.test(r.field) ? "m/s²" : undefined };
        for (; last < now() - r.bucket_ms / 1000; last += r.bucket_ms / 1000) {
          const v = Math.sin(last * 1.3 + phase) * 2 + Math.sin(last * 7 + phase) * 0.3;
          out.t_s.push(last); out.min.push(v - 0.25); out.max.push(v + 0.25); out.last.push(v + 0.1 * Math.random()); out.n.push(20);
        }
        return out;
      } };
    },
    messages: (r) => {
      let seq = 9123;
      return { each_ms: 1000 / (r.hz ?? 5), next: () => {
        const t = now();
        seq += 250;
        const json = r.topic === "/joint_states" || r.topic === "/motor_commands"
          ? { joints: Array.from({ length: 12 }, (_x, i) => ({ name: `joint_${i}`, position: Math.sin(t + i), velocity: Math.cos(t + i), effort: 0.2 * i })) }
          : r.topic === "/scan" ? { frame_id: "laser", start_angle: -2.35, end_angle: 2.35, ranges: Array.from({ length: 120 }, (_x, i) => 3 + Math.sin(i / 9 + t)) }
          : { timestamp: new Date(t * 1000).toISOString(), frame_id: "imu", orientation: { x: 0, y: 0, z: Math.sin(t / 9), w: Math.cos(t / 9) }, angular_velocity: { x: 0.01 * Math.random(), y: Math.sin(t), z: 0.3 }, linear_acceleration: { x: Math.sin(t * 2), y: 0.2, z: 9.81 }, temperature: 36.5, exposure_ns: 1_843_000, stamp_ns: "1790000000123456789", odometer: 12345678901, valid: true, covariance: [0.01, 0, 0, 0.01] };
        const units = { "angular_velocity.x": "rad/s", "angular_velocity.y": "rad/s", "angular_velocity.z": "rad/s", "linear_acceleration.x": "m/s²", "linear_acceleration.y": "m/s²", "linear_acceleration.z": "m/s²", temperature: "°C", "joints[].position": "rad", exposure_ns: "ns", stamp_ns: "ns" };
        return { units, node: r.topic.startsWith(LONG) ? LONG : "/imu", seq, sent_s: t, type: RATES[r.topic]?.[2] ?? "raw", len: 120, json };
      } };
    },
    image: (r) => {
      let seq = 1;
      const depth = r.topic === "/camera/depth";
      return { each_ms: 125, next() {
        const [w, h, t] = [320, 240, now()];
        const payload = Buffer.alloc(w * h * 4);
        for (let y = 0; y < h; y++) for (let x = 0; x < w; x++) payload.writeUInt32LE((0xff000000 | ((128 + 127 * Math.sin(x / 40 + t)) << 16) | ((y & 255) << 8) | ((x ^ y) & 255)) >>> 0, (y * w + x) * 4);
        return { json: { width: w, height: h, full_width: 1280, full_height: 960, encoding: "rgba8", pixels: depth ? "16UC1" : "rgb8", ...(depth && { scale: { bright: 512, dark: 4830, unit: "mm" } }), frame_id: "camera", node: "/camera", seq: seq++, sent_s: t }, payload };
      } };
    },
    cloud: () => ({ each_ms: 200, next() {
      const n = 20000;
      const points = new Float32Array(n * 3);
      for (let i = 0; i < n; i++) {
        const [a, r] = [i * 2.399963, Math.sqrt(i / n) * 6];
        points.set([r * Math.cos(a), r * Math.sin(a), Math.sin(r * 1.6 + now()) * 0.6], i * 3);
      }
      return { json: { points: n, total_points: 131072, fields: ["x", "y", "z"], frame_id: "lidar", node: "/lidar", seq: 1, sent_s: now() }, payload: Buffer.from(points.buffer) };
    } }),
    scan: () => ({ each_ms: 125, next() {
      const n = 720;
      const ranges = new Float32Array(n);
      for (let i = 0; i < n; i++) ranges[i] = i % 97 === 0 ? Infinity : 3 + Math.sin(i / 60) + 0.6 * Math.sin(i / 15 + now()) + 0.02 * Math.random();
      return { json: { ranges: n, angle_min: -2.35, angle_max: 2.35, frame_id: "laser", node: "/lidar", seq: 1, sent_s: now() }, payload: Buffer.from(ranges.buffer) };
    } }),
    tf: () => ({ each_ms: 200, next() {
      const turn = now() / 4;
      const frame = (frame, parent, translation, rotation = [0, 0, 0, 1]) => ({ frame, parent, translation, rotation, sent_s: now(), node: "/estimator" });
      return { frames: [frame("odom", "map", [0.2, 0.1, 0]), frame("base_link", "odom", [0.5, 0, 0.3], [0, 0, Math.sin(turn / 2), Math.cos(turn / 2)]), frame("lidar", "base_link", [0.2, 0, 0.25]), frame("camera", "base_link", [0.3, 0, 0.1], [-0.5, 0.5, -0.5, 0.5]), frame("a", "b", [1, 0, 0]), frame("b", "a", [1, 0, 0]), ...["fl", "fr", "rl", "rr"].map((leg, i) => frame(`${leg}_foot`, "base_link", [i < 2 ? 0.25 : -0.25, i % 2 ? -0.15 : 0.15, -0.3]))] };
    } }),
    state: ({ host }) => {
      let first = true;
      // The other host is disconnected.
      if (host) return { each_ms: 500, next: () => ({ whole: true, entries: [{ ...state.get("/arm/target/x"), key: `@${host}/dock/charge`, node: `@${host}/dock`, value: 0.75 }], away: true, known_s: now() - 7 }) };
      return { each_ms: 500, next() {
        if (first) { first = false; return { whole: true, entries: [...state.values()], revision: 9 }; }
        const entry = { ...state.get("/arm/target/x"), value: Math.sin(now()) };
        state.set(entry.key, entry);
        return { entries: [...state.values()], deleted: [] };
      } };
    },
    params: ({ host }) => ({ each_ms: 300, next: () => (host ? { params: [{ ...params[1], node: `@${host}/dock` }], away: null } : { params }) }),
    logs: () => {
      let first = true;
      const line = (t, level, node, message) => ({ time_s: t, level, node, name: node.slice(1), message, file: "nodes/arm.py", line: 42 });
      return { each_ms: 900, next() {
        const t = now();
        if (!first) return { lines: [line(t, "info", "/planner", `replanned in ${(3 + Math.random()).toFixed(2)} ms`)] };
        first = false;
        return { lines: [line(t - 40, "info", "/controller", "ready after 0.4 s"), line(t - 30, "warning", "/battery", "22.1 V: below 22.5 V"), line(t - 22, "error", "/force", "no answer of the sensor for 50 ms: contacts are not known"), line(t - 20, "info", "/estimator", "goes on with joint torques in place of contacts")] };
      } };
    },
    commands: () => ({ each_ms: 300, next: () => no_commands ? { commands: [] } : ({ commands: [{ command: "/cmd_vel", receiver: LONG, state: held ? "fallback" : "in_force", reason: held ? "preempted" : "granted", driver: held ? "/rnet_dashboard_1" : "/planner", priority: held ? 100 : 10, lease_ns: 2e8, deadline_ns: 5e7, applied: 12345, ignored: 2, fallbacks: 1, held, stop_wanted: held }] }) }),
    command_log: () => { let sent = false; return { each_ms: 1000, next: () => { if (sent) return null; sent = true; return { lines: [{ time_s: now() - 50, receiver: "/controller", kind: "granted", node: "/planner", priority: 10, number: 1, text: "" }] }; } }; },
    services: () => ({ each_ms: 1000, next: () => ({ services: [{ service: "/plan", kind: "service", nodes: ["/planner", LONG], clients: 1, request: "demo.PlanRequest", reply: "demo.Plan", feedback: null }, { service: "/dock", kind: "action", nodes: ["/planner"], clients: 0, request: "demo.DockGoal", reply: "demo.DockResult", feedback: "demo.DockFeedback" }] }) }),
    record: () => ({ each_ms: 1000, next: () => ({ recording: recording && { ...recording, seconds: now() - recording.at, messages: Math.round((now() - recording.at) * 4000), bytes: Math.round((now() - recording.at) * 3e7) }, files, playing: playing && { ...playing, at_s: playing.is_over ? 60 : now() - playing.began }, folder: "/home/robot/recordings", blackbox: { kept_s: 31, memory_bytes: 67_108_864, messages: 81_234, missing: 0, fired: 1, files: 1, pending: null, last_file: "blackbox/2026-11-24T05-00-00.mcap", triggers: ["death", "/battery.voltage < 21", "log error"] } }) }),
    launch: () => ({ each_ms: 1000, next: () => ({ nodes: Object.keys(NODES).map((node, i) => ({ node, file: "robot.toml", pid: 4000 + i, state: node === "/force" ? "failed" : "ready", restarts: node === "/force" ? 5 : 0, started_s: began, end: node === "/force" ? "exit code 1, given up" : null })) }) }),
  };

  return {
    hello: { protocol: 1, version: "0.1.0", domain: "0", host: "robot", read_only: false, token: null, role: "drive", limits: { subscriptions: 64, request_bytes: 262144, message_json_bytes: 65536, image_px: 307200, cloud_points: 20000 }, ...hello },
    subscribe: (request) => kinds[request.what]?.(request),
    request(request, more, done) {
      const { op } = request;
      if (op === "param.set") {
        if (request.node.startsWith("@")) throw new Error(`/params/dock${request.name} has its home on host base, which is not reachable: a rule of its robot.toml forbids it`);
        const param = params.find((p) => p.node === request.node && p.name === request.name);
        if (param.max != null && request.value > param.max) throw new Error(`bad value for parameter ${param.name} of ${param.node}: ${request.value} is above its maximum ${param.max}`);
        Object.assign(param, { value: request.value, is_default: false, set_by: "/rnet_dashboard_1" });
        return done({ param });
      }
      if (op === "param.reset") return done({});
      if (op === "state.set") { state.set(request.key, { key: request.key, type: request.type ?? "str", value: request.value, revision: 500, version: 1, node: "/rnet_dashboard_1", written_s: now(), durable: false, ttl_s: null, last_will: false }); return done({}); }
      if (op === "state.delete") { state.delete(request.key); return done({}); }
      if (op === "command.take_all") { held = true; return done({ held: ["/cmd_vel"], refused: [] }); }
      if (op === "command.release_all") { held = false; return done({ released: ["/cmd_vel"], refused: [] }); }
      if (op === "command.take") { held = true; return done({ held }); }
      if (op === "command.release") { held = false; return done({}); }
      if (op === "type") return done({ form: { type: "demo.PlanRequest", kind: "protobuf", fields: [{ name: "goal", type: "message", message_type: "foxglove.Pose", fields: [{ name: "position", type: "message", message_type: "foxglove.Vector3", fields: ["x", "y", "z"].map((name) => ({ name, type: "float64", doc: "m" })) }] }, { name: "max_speed", type: "float32", default: 1 }, { name: "mode", type: "enum", values: [{ name: "FAST", number: 0 }, { name: "SAFE", number: 1 }] }, { name: "avoid_stairs", type: "bool" }, { name: "through", type: "string", list: true }, { name: "by", type: "timestamp", oneof: "limit" }, { name: "within", type: "duration", oneof: "limit" }] } });
      if (op === "call") {
        const steps = request.service === "/dock" ? [0.25, 0.5, 0.75] : [];
        steps.forEach((progress, i) => setTimeout(() => more({ feedback: { progress } }), 300 * (i + 1)));
        setTimeout(() => done({ reply: { ok: true, path_m: 4.2 } }), 300 * (steps.length + 1));
        return;
      }
      if (op === "play.start") { playing = { name: request.name, began: now(), length_s: 60, paused: false, is_over: false, played: null, problem: null }; return done({ file: `/home/robot/recordings/${request.name}` }); }
      if (op === "play.pause") { playing.paused = !playing.paused; return done({}); }
      if (op === "play.stop") { playing = { ...playing, is_over: true, played: 9123 }; return done({ played: 9123 }); }
      if (op === "record.start") { recording = { file: "/home/robot/recordings/2026-11-24T06-00-00.mcap", missing: 0, at: now() }; return done({ file: recording.file }); }
      if (op === "record.stop") { const { file } = recording; recording = null; return done({ file, messages: 1234, missing: 0 }); }
      if (op === "launch.logs") return done({ text: "started\nready after 0.4 s" });
      done({});
    },
  };
}
