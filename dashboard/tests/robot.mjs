// A robot of a few processes in its own domain, and `rnet dashboard`.

import { execFile, spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const RNET = process.env.RNET ?? ["target/debug/rnet", "target/release/rnet"].map((path) => ROOT + path).find(existsSync);
const PYTHON = process.env.PYTHON ?? `${ROOT}.venv/bin/python`;
export const ROLES = ["imu", "lidar", "estimator", "base", "driver", "sonar"];

/** Why `rnet` is unavailable, or `false`. */
export function no_rnet() {
  return RNET ? false : "rnet is not built: make build";
}

/** Why the robot is unavailable, or `false`. */
export function no_robot() {
  if (no_rnet()) return no_rnet();
  return existsSync(PYTHON) ? false : `${PYTHON} is missing: make build`;
}

export class Robot {
  dir = mkdtempSync("/dev/shm/rnet-dashboard-test-");
  env = { ...process.env, RNET_DIR: this.dir, RNET_DOMAIN: "robot", OPENBLAS_NUM_THREADS: "1", RNET_NETWORK: "off" };
  nodes = new Map();
  children = new Set();
  server = null;
  said = "";

  async start() {
    for (const role of ROLES) this.start_node(role);
    await this.until("all nodes are there", async () => {
      const nodes = await this.json("node", "list");
      return ROLES.every((role) => JSON.stringify(nodes).includes(`"/${role}"`));
    });
    await this.until("the driver drives", async () => JSON.stringify(await this.json("command", "who", "/cmd_vel")).includes('"/driver"'));
    return this.serve();
  }

  /** Starts the robot of `rnet demo` instead of these nodes; returns the address of the dashboard. */
  async demo() {
    this.launcher = this.spawn(RNET, ["demo", "--domain", this.env.RNET_DOMAIN, "--model", "embedded", "--seconds", "3600"]);
    await this.until("its nodes are there", async () => JSON.stringify(await this.json("node", "list")).includes('"/simulation"'));
    return this.serve();
  }

  start_node(role) {
    this.nodes.set(role, this.spawn(PYTHON, [fileURLToPath(new URL("robot.py", import.meta.url)), role]));
  }

  /** Starts a node with `rnet launch`, whose records are in this domain. It is stopped with the launcher. */
  launch() {
    const file = `${this.dir}/robot.toml`;
    const command = JSON.stringify([RNET, "topic", "pub", "/beat", "--text", "beat", "--rate", "10", "--node-name", "beat"]);
    writeFileSync(file, `[node.beat]\ncommand = ${command}\nrestart = "always"\ndie_with_launcher = true\n`);
    this.launcher = this.spawn(RNET, ["launch", file]);
  }

  blackbox() {
    this.spawn(RNET, ["blackbox", "run", "--trigger", "death", "--after", "0.2", "--output", `${this.dir}/blackbox`]);
  }

  /** Kills the dashboard, and waits until its port is free. */
  async kill_server() {
    const ended = new Promise((done) => this.server.once("exit", done));
    this.server.kill("SIGKILL");
    await ended;
  }

  /** Starts the dashboard; returns the address of its page. */
  async serve(...options) {
    const server = this.spawn(RNET, ["dashboard", "--recordings", this.dir, ...(options.includes("--port") ? [] : ["--port", "0"]), ...options]);
    this.server = server;
    const said = () => this.said.match(/http:\/\/127\.0\.0\.1:\d+\//g) ?? [];
    const before = said().length;
    await this.until("the dashboard prints its address", () => said().length > before);
    return said().pop();
  }

  spawn(program, args) {
    const child = spawn(program, args, { env: this.env, stdio: ["ignore", "pipe", "pipe"] });
    this.children.add(child);
    child.on("exit", () => this.children.delete(child));
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (data) => (this.said += data));
    return child;
  }

  async rnet(...args) {
    const { stdout } = await promisify(execFile)(RNET, args, { env: this.env });
    return stdout;
  }

  async json(...args) {
    const stdout = await this.rnet(...args, "--json");
    try {
      return JSON.parse(stdout);
    } catch {
      return stdout.trim().split("\n").map((line) => JSON.parse(line));
    }
  }

  /** Waits for a condition; fails after a minute. */
  async until(what, condition) {
    const end = Date.now() + 60_000;
    let error;
    for (;;) {
      try {
        if (await condition()) return;
      } catch (failed) {
        error = failed;
      }
      if (Date.now() > end) throw new Error(`not so within a minute: ${what}${error ? ` (${error.message})` : ""}\n${this.said.slice(-3000)}`);
      await new Promise((done) => setTimeout(done, 50));
    }
  }

  async end() {
    if (this.launcher?.exitCode === null) {
      const gone = new Promise((done) => this.launcher.on("exit", done));
      this.launcher.kill("SIGINT");
      await gone;
    }
    await Promise.all([...this.children].map((child) => new Promise((done) => (child.on("exit", done), child.kill("SIGKILL")))));
    rmSync(this.dir, { recursive: true, force: true });
  }
}
