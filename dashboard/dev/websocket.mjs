// The server side of RFC 6455, as far as a mock needs it: text and binary frames, close, ping.

import { createHash } from "node:crypto";

const MAGIC = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

export function accept(request, socket, on_text, on_close) {
  const key = createHash("sha1").update(request.headers["sec-websocket-key"] + MAGIC).digest("base64");
  socket.write(`HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${key}\r\n\r\n`);
  let rest = Buffer.alloc(0);
  socket.on("data", (data) => {
    rest = Buffer.concat([rest, data]);
    for (let frame = take(rest); frame; frame = take(rest)) {
      rest = rest.subarray(frame.length);
      if (frame.opcode === 8) socket.end();
      else if (frame.opcode === 1) on_text(frame.payload.toString());
    }
  });
  socket.on("close", on_close);
  socket.on("error", () => {});
  return {
    text: (object) => socket.writable && socket.write(frame(1, Buffer.from(JSON.stringify(object)))),
    binary: (object, payload) => {
      let json = JSON.stringify(object);
      while ((4 + Buffer.byteLength(json)) % 4) json += " ";
      const head = Buffer.from(json);
      const length = Buffer.alloc(4);
      length.writeUInt32LE(head.length);
      if (socket.writable) socket.write(frame(2, Buffer.concat([length, head, payload])));
    },
  };
}

function take(data) {
  if (data.length < 6) return null;
  const opcode = data[0] & 15;
  let length = data[1] & 127;
  let at = 2;
  if (length === 126) [length, at] = [data.readUInt16BE(2), 4];
  else if (length === 127) [length, at] = [Number(data.readBigUInt64BE(2)), 10];
  if (data.length < at + 4 + length) return null;
  const mask = data.subarray(at, at + 4);
  const payload = Buffer.from(data.subarray(at + 4, at + 4 + length));
  for (let i = 0; i < length; i++) payload[i] ^= mask[i % 4];
  return { opcode, payload, length: at + 4 + length };
}

function frame(opcode, payload) {
  const size = payload.length;
  if (size < 126) return Buffer.concat([Buffer.from([0x80 | opcode, size]), payload]);
  const head = Buffer.alloc(size < 65536 ? 4 : 10);
  head[0] = 0x80 | opcode;
  if (size < 65536) {
    head[1] = 126;
    head.writeUInt16BE(size, 2);
  } else {
    head[1] = 127;
    head.writeBigUInt64BE(BigInt(size), 2);
  }
  return Buffer.concat([head, payload]);
}
