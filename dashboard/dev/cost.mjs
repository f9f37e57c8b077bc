// Measures the cost of a page with a hundred topics at 1 kHz: node dev/cost.mjs [SECONDS]
// Prints the CPU time of the browser, of `rnet dashboard` and of the publisher, in percent of a core.
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { browser, watched } from "../tests/browser.mjs";
import { Robot } from "../tests/robot.mjs";

const seconds = Number(process.argv[2] ?? 10);
const TICKS_PER_S = 100;

/** CPU seconds of the processes for which `is_meant` is true, from /proc. */
function cpu_s(is_meant) {
  let ticks = 0;
  for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    try {
      const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
      const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
      if (is_meant(Number(pid), stat)) ticks += Number(fields[11]) + Number(fields[12]);
    } catch {
      // The process has exited.
    }
  }
  return ticks / TICKS_PER_S;
}

const robot = new Robot();
const python = process.env.PYTHON ?? fileURLToPath(new URL("../../.venv/bin/python", import.meta.url));
const publisher = robot.spawn(python, [fileURLToPath(new URL("hundred.py", import.meta.url))]);
const late = () => robot.said.match(/late_us .*/g)?.at(-1) ?? "";

async function measure(what) {
  await new Promise((done) => setTimeout(done, 3000));
  const parts = {
    browser: (pid, stat) => stat.includes("(chrom"),
    server: (pid) => pid === robot.server?.pid,
    publisher: (pid) => pid === publisher.pid,
  };
  const before = Object.values(parts).map(cpu_s);
  await new Promise((done) => setTimeout(done, seconds * 1000));
  const spent = Object.values(parts).map((part, n) => ((100 * (cpu_s(part) - before[n])) / seconds).toFixed(1));
  console.log(`${what.padEnd(28)} ${Object.keys(parts).map((name, n) => `${name} ${spent[n]} %`).join("  ")}  ${late()}`);
}

try {
  await robot.until("messages are sent", () => late() !== "");
  await measure("no dashboard");
  const url = await robot.serve();
  await measure("a dashboard without a page");
  const chrome = await browser();
  const { page } = await watched(await chrome.newContext({ viewport: { width: 1280, height: 860 } }));
  await page.goto(`${url}#/topics`);
  await page.getByText("live", { exact: true }).waitFor();
  await measure("the table of topics");
  await page.goto(`${url}#/topics/%2Fsignal%2Fs07`);
  for (const field of ["x", "y"]) await page.getByRole("button", { name: new RegExp(`^${field}:`) }).click();
  await measure("a topic, two fields plotted");
  await page.goto(`${url}#/overview`);
  await measure("the graph");
  await chrome.close();
  await measure("the page closed");
} finally {
  await robot.end();
}
