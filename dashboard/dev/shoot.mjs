// Takes screenshots of the views with the mock: node dev/shoot.mjs OUT [VIEW…]
import { mkdirSync } from "node:fs";
import { start } from "./mock.mjs";
import { browser } from "../tests/browser.mjs";

const [out = "/tmp/shots", ...views] = process.argv.slice(2);
mkdirSync(out, { recursive: true });
const mock = await start();
const chrome = await browser();
const all = views.length ? views : ["overview", "topics", "topics/%2Fimu", "topics/%2Fscan", "topics/%2Fcamera%2Fimage", "topics/%2Fcloud", "nodes", "nodes/%2Fplanner", "plots", "transforms", "problems", "logs", "commands", "params", "state", "services", "services/%2Fplan", "record", "launch", "hosts"];
for (const [name, scheme, width, height] of [["light", "light", 1440, 900], ["dark", "dark", 1440, 900], ["phone", "light", 390, 844]]) {
  const context = await chrome.newContext({ colorScheme: scheme, viewport: { width, height } });
  const page = await context.newPage();
  page.on("console", (m) => m.type() === "error" && console.log(name, m.text()));
  page.on("pageerror", (e) => console.log(name, e.message));
  for (const view of all) {
    await page.goto(`${mock.url}#/${view}`);
    await page.waitForTimeout(1500);
    if (view === "topics/%2Fimu") {
      for (const label of ["linear_acceleration.x", "linear_acceleration.y", "angular_velocity.y"]) await page.getByRole("button", { name: new RegExp(`^${label}:`) }).click();
      await page.waitForTimeout(4000);
    }
    await page.screenshot({ path: `${out}/${name}-${view.replace(/%2F|\//g, "_")}.png` });
  }
  await context.close();
}
await chrome.close();
mock.close();
