// A mock server for the protocol of docs/design/dashboard.md, for work on the page without a robot.
// Usage: node dev/mock.mjs [PORT] [TOPICS]   (serves the page from dist: also run `npx vite build --watch`)

import { createServer } from "node:http";
import { readFile } from "node:fs/promises";
import { extname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";
import { robot } from "./robot.mjs";
import { accept } from "./websocket.mjs";

const DIST = fileURLToPath(new URL("../dist", import.meta.url));
const TYPES = { ".html": "text/html; charset=utf-8", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml" };
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self'; manifest-src 'self'; " +
  "connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

export function start(port = 0, options = {}) {
  const server = createServer(async (request, answer) => {
    const path = normalize(new URL(request.url, "http://x").pathname);
    if (path === "/healthz") return void answer.writeHead(200).end("{}");
    try {
      const body = await readFile(join(DIST, path === "/" ? "index.html" : path));
      answer.writeHead(200, { "Content-Type": TYPES[extname(path)] ?? TYPES[".html"], "Content-Security-Policy": POLICY, "Cache-Control": "no-store" }).end(body);
    } catch {
      answer.writeHead(404).end();
    }
  });
  // The HTTP server no longer tracks upgraded connections.
  const sockets = new Set();
  let is_silent = false;
  server.on("upgrade", (request, socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
    const fake = robot(options);
    const subs = new Map();
    const out = accept(request, socket, (text) => handle(JSON.parse(text)), () => subs.forEach((timer) => clearInterval(timer)));
    out.text({ hello: fake.hello });
    const push = (id, next) => {
      if (is_silent) return;
      const data = next();
      if (data === null) return;
      if (data.payload) out.binary({ sub: id, data: data.json }, data.payload);
      else if (data.error) out.text({ sub: id, error: data.error });
      else out.text({ sub: id, data });
    };
    function handle(request) {
      // An acknowledgement of a picture.
      if (request.op === undefined) return;
      const { id, op } = request;
      if (op === "sub") {
        const made = fake.subscribe(request);
        if (!made) return out.text({ re: id, ok: false, error: { code: "not_found", message: `there is no ${request.what}` } });
        out.text({ re: id, ok: true });
        push(id, made.next);
        subs.set(id, setInterval(() => push(id, made.next), made.each_ms));
      } else if (op === "unsub") {
        clearInterval(subs.get(request.sub));
        subs.delete(request.sub);
        out.text({ re: id, ok: true });
      } else {
        try {
          fake.request(request, (part) => out.text({ re: id, more: true, ...part }), (answer) => out.text({ re: id, ok: true, ...answer }));
        } catch (error) {
          out.text({ re: id, ok: false, error: { code: "refused", message: error.message } });
        }
      }
    }
  });
  return new Promise((resolve) => server.listen(port, "127.0.0.1", () => resolve({ url: `http://127.0.0.1:${server.address().port}/`, silence: () => (is_silent = true), close: () => (server.close(), server.closeAllConnections(), sockets.forEach((socket) => socket.destroy())) })));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { url } = await start(Number(process.argv[2] ?? 8421), { topics: Number(process.argv[3] ?? 0) });
  console.log(url);
}
