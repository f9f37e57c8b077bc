// Tests the server with Foxglove's own client and a protobuf library that reads types at run time; it uses no
// code of robot-net. `node client.mjs live URL` or `node client.mjs played URL`; exits with 0 on success.

import assert from "node:assert/strict";

import { createFileRegistry, create, fromBinary, toBinary, toJson } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import protocol from "@foxglove/ws-protocol";
import WebSocket from "ws";

const { FoxgloveClient } = protocol;
const LIMIT_MS = 60_000; // only a hang takes this long
const [, , what, url] = process.argv;

/** All events of the client by name, and the waiting readers. */
class EventLog {
  #events = [];
  #waiting = [];

  add(event, value) {
    this.#events.push({ event, value });
    this.#waiting = this.#waiting.filter((check) => !check());
  }

  /** The first matching event among past and future ones. */
  until(event, wanted = () => true) {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`no ${event} as wanted: ${wanted}`)), LIMIT_MS);
      const check = () => {
        const at = this.#events.findIndex((entry) => entry.event === event && wanted(entry.value));
        if (at < 0) return false;
        clearTimeout(timer);
        resolve(this.#events.splice(at, 1)[0].value);
        return true;
      };
      if (!check()) this.#waiting.push(check);
    });
  }
}

const ws = new WebSocket(url, [FoxgloveClient.SUPPORTED_SUBPROTOCOL]);
const log = new EventLog();
ws.on("message", (data, isBinary) => {
  // This client is older than the playback messages of the protocol.
  if (isBinary && new Uint8Array(data)[0] === 5) log.add("playback", Buffer.from(data));
});
const client = new FoxgloveClient({ ws });
const events = [
  "serverInfo", "status", "message", "time", "unadvertise", "advertiseServices",
  "parameterValues", "serviceCallResponse", "serviceCallFailure", "connectionGraphUpdate",
];
for (const event of events) client.on(event, (value) => log.add(event, value));
client.on("error", () => {});
client.on("advertise", (channels) => channels.forEach((channel) => log.add("channel", channel)));

const bytes = (view) => new Uint8Array(view.buffer, view.byteOffset, view.byteLength);

/** The type of a channel, from its advertisement alone. */
function typeOf({ schema, schemaEncoding, schemaName }) {
  assert.equal(schemaEncoding, "protobuf");
  const set = fromBinary(FileDescriptorSetSchema, Buffer.from(schema, "base64"));
  const registry = createFileRegistry(set);
  const type = registry.getMessage(schemaName);
  assert.ok(type, schemaName);
  return type;
}

async function subscribe(topic) {
  const channel = await log.until("channel", (one) => one.topic === topic);
  return { channel, id: client.subscribe(channel.id) };
}

async function live() {
  const info = await log.until("serverInfo");
  assert.ok(info.capabilities.includes("clientPublish"), info.capabilities);

  const force = await subscribe("/force");
  const type = typeOf(force.channel);
  const message = await log.until("message", (one) => one.subscriptionId === force.id);
  const { x, y, z } = fromBinary(type, bytes(message.data));
  assert.deepEqual([x, y, z], [1.5, 2.5, 3.5]);
  assert.ok(message.timestamp > 1_600_000_000_000_000_000n);

  // Its JSON has the names of the description: this library does not convert names.
  const frame = await subscribe("/tf");
  const place = await log.until("message", (one) => one.subscriptionId === frame.id);
  const ofTf = typeOf(frame.channel);
  const json = toJson(ofTf, fromBinary(ofTf, bytes(place.data)));
  assert.deepEqual([json.parentFrameId, json.childFrameId], ["base", "arm"]);

  const leg = await subscribe("/leg");
  assert.equal(leg.channel.encoding, "json");
  const plain = await log.until("message", (one) => one.subscriptionId === leg.id);
  assert.deepEqual(JSON.parse(Buffer.from(bytes(plain.data))), { force: 2.5 });

  client.subscribeConnectionGraph();
  const publishes = (graph) => graph.publishedTopics.find((topic) => topic.name === "/force");
  const graph = await log.until("connectionGraphUpdate", publishes);
  assert.deepEqual(publishes(graph).publisherIds, ["/robot"]);
  assert.deepEqual(graph.advertisedServices, [{ name: "/plan", providerIds: ["/robot"] }]);

  const { 0: service } = await log.until("advertiseServices");
  assert.equal(service.name, "/plan");
  const request = typeOf(service.request);
  const data = toBinary(request, create(request, { x: 4 }));
  client.sendServiceCallRequest({ serviceId: service.id, callId: 1, encoding: "protobuf", data });
  const reply = await log.until("serviceCallResponse", (one) => one.callId === 1);
  assert.equal(reply.encoding, "protobuf");
  const replied = typeOf(service.response);
  assert.equal(fromBinary(replied, bytes(reply.data)).x, 8);
  const asked = new TextEncoder().encode('{"x": 5}');
  client.sendServiceCallRequest({ serviceId: service.id, callId: 2, encoding: "json", data: asked });
  const second = await log.until("serviceCallResponse", (one) => one.callId === 2);
  assert.equal(JSON.parse(Buffer.from(bytes(second.data))).x, 10);

  client.getParameters([], "all");
  const all = await log.until("parameterValues", (one) => one.id === "all");
  assert.deepEqual(all.parameters.find((one) => one.name === "/robot/speed"), {
    name: "/robot/speed", value: 1, type: "float64",
  });
  client.subscribeParameterUpdates(["/robot/speed", "/robot/goal"]);
  client.setParameters([{ name: "/robot/speed", value: 1.75, type: "float64" }], "set");
  const set = await log.until("parameterValues", (one) => one.id === "set");
  assert.equal(set.parameters[0].value, 1.75);
  const speed = (one) => one.id === undefined && one.parameters[0].name === "/robot/speed";
  const update = await log.until("parameterValues", speed);
  assert.equal(update.parameters[0].value, 1.75);

  // The node confirms by a parameter that it has received the published message.
  const channel = client.advertise({
    topic: "/goal", encoding: "protobuf", schemaName: force.channel.schemaName,
    schema: force.channel.schema, schemaEncoding: "protobuf",
  });
  const goal = toBinary(type, create(type, { x: 7, y: 0, z: 0 }));
  const sends = setInterval(() => client.sendMessage(channel, goal), 50);
  const got = (one) => one.parameters[0].name === "/robot/goal";
  const arrived = await log.until("parameterValues", got);
  clearInterval(sends);
  assert.equal(arrived.parameters[0].value, 7);
}

/** A playback control request in Foxglove's format, which the client above does not support. */
function control(plays, rate, seekNs, id) {
  const name = Buffer.from(id);
  const frame = Buffer.alloc(19 + name.length);
  frame.writeUInt8(3, 0);
  frame.writeUInt8(plays ? 0 : 1, 1);
  frame.writeFloatLE(rate, 2);
  frame.writeUInt8(seekNs === undefined ? 0 : 1, 6);
  frame.writeBigUInt64LE(seekNs ?? 0n, 7);
  frame.writeUInt32LE(name.length, 15);
  name.copy(frame, 19);
  ws.send(frame);
}

function playbackState(frame) {
  const len = frame.readUInt32LE(15);
  return {
    status: frame.readUInt8(1), now: frame.readBigUInt64LE(2), rate: frame.readFloatLE(10),
    didSeek: frame.readUInt8(14) === 1, id: frame.subarray(19, 19 + len).toString(),
  };
}

async function played() {
  const info = await log.until("serverInfo");
  assert.ok(info.capabilities.includes("playbackControl"), info.capabilities);
  const ns = ({ sec, nsec }) => BigInt(sec) * 1_000_000_000n + BigInt(nsec);
  const [start, end] = [ns(info.dataStartTime), ns(info.dataEndTime)];
  assert.ok(end > start);

  const force = await subscribe("/force");
  const type = typeOf(force.channel);
  const x = (message) => fromBinary(type, bytes(message.data)).x;
  const next = () => log.until("message", (one) => one.subscriptionId === force.id);
  for (let number = 0; number < 10; number++) {
    const message = await next();
    assert.equal(x(message), number);
    assert.ok(message.timestamp >= start && message.timestamp <= end);
  }
  const ended = playbackState(await log.until("playback"));
  assert.equal(ended.status, 3);
  await log.until("time", (time) => time.timestamp >= start);

  // Restarts from the beginning in the paused state: no messages arrive until it resumes.
  control(false, 1, start, "back");
  const back = playbackState(await log.until("playback", (one) => playbackState(one).id === "back"));
  assert.deepEqual([back.status, back.now, back.didSeek], [1, start, true]);
  control(true, 50, undefined, "on");
  const on = playbackState(await log.until("playback", (one) => playbackState(one).id === "on"));
  assert.deepEqual([on.status, on.rate, on.didSeek], [0, 50, false]);
  for (let number = 0; number < 10; number++) assert.equal(x(await next()), number);
  control(true, 1e9, undefined, "too fast");
  await log.until("status", (said) => said.message.includes("speed"));
}

await { live, played }[what]();
console.log("ok");
client.close();
process.exit(0);
