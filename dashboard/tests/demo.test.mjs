// The page in a real browser with the robot of `rnet demo`: ten processes, one of which is killed.

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { after, before, test } from "node:test";
import { browser, CHROMIUM, VIEWS, watched } from "./browser.mjs";
import { no_rnet, Robot } from "./robot.mjs";

const skip = (existsSync(CHROMIUM) ? false : `${CHROMIUM} is not installed`) || no_rnet();
/** The topics of the demo with continuous messages. */
const TOPICS = ["/robot/state", "/robot/torque", "/robot/estimate", "/robot/force", "/camera/image", "/battery/state", "/operator/drive"];

let chrome;
let robot;
let url;
before(async () => {
  if (skip) return;
  robot = new Robot();
  url = await robot.demo();
  chrome = await browser();
});
after(async () => {
  await chrome?.close();
  await robot?.end();
});

test("all views of the demo open, and a field that is clicked is plotted", { skip }, async () => {
  const { page, errors } = await watched(await chrome.newContext({ viewport: { width: 1280, height: 860 } }));
  await page.goto(`${url}#/overview`);
  await page.getByText("live", { exact: true }).waitFor();
  for (const node of ["/simulation", "/controller", "/estimator", "/logger"]) await page.locator(`.box.node[data-node="${node}"]`).waitFor();
  for (const view of [...VIEWS, ...TOPICS.map((topic) => `topics/${encodeURIComponent(topic)}`), "nodes/%2Fcontroller"]) {
    await page.goto(`${url}#/${view}`);
    await page.locator("main h1").waitFor();
    await page.waitForFunction(() => ![...document.querySelectorAll("main .empty")].some((one) => one.textContent.startsWith("Waiting")));
    // With ten busy processes on a small machine, the page may wait for seconds, and shows an alert
    // meanwhile.
    await robot.until(`${view} says no more that something is wrong`, async () => {
      const alerts = await page.getByRole("alert").allTextContents();
      if (alerts.length) throw new Error(alerts.join("; "));
      return true;
    });
  }
  await page.goto(`${url}#/topics/%2Frobot%2Fstate`);
  await page.getByRole("button", { name: /^number:/ }).click();
  const plot = page.locator(".plot");
  await robot.until("points have come", async () => Number(await plot.getAttribute("data-points")) > 20);
  // The field counts messages, so it only grows.
  const values = [];
  await robot.until("the value moves", async () => {
    const value = Number((await plot.locator(".value").first().textContent()).replace(/[^\d.e+]/g, ""));
    if (value !== values.at(-1)) values.push(value);
    return values.length > 3;
  });
  assert.ok(values.every((value) => Number.isFinite(value)), values);
  assert.deepEqual(errors, []);
  await page.context().close();
});
