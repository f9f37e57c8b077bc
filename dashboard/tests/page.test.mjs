// The page in a real browser with the mock server: behaviour that does not depend on a robot.

import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { after, before, test } from "node:test";
import { start } from "../dev/mock.mjs";
import { LONG } from "../dev/robot.mjs";
import { browser, CHROMIUM, VIEWS, watched } from "./browser.mjs";

const skip = existsSync(CHROMIUM) ? false : `${CHROMIUM} is not installed`;
const AXE = createRequire(import.meta.url).resolve("axe-core/axe.min.js");

let chrome;
let mock;
before(async () => {
  if (skip) return;
  mock = await start();
  chrome = await browser();
});
after(async () => {
  await chrome?.close();
  mock?.close();
});

async function opened(options, view = "overview", url = mock.url) {
  const { page, errors } = await watched(await chrome.newContext(options));
  await page.goto(`${url}#/${view}`);
  await page.getByText("live", { exact: true }).waitFor();
  return { page, errors };
}

for (const scheme of ["light", "dark"]) {
  test(`axe finds nothing in any view, ${scheme}`, { skip }, async () => {
    const { page, errors } = await opened({ colorScheme: scheme, viewport: { width: 1280, height: 900 } });
    const found = [];
    for (const view of [...VIEWS, "topics/%2Fimu", "topics/%2Fcloud", "topics/%2Fcamera%2Fdepth", "nodes/%2Fplanner", "services/%2Fplan"]) {
      await page.goto(`${mock.url}#/${view}`);
      await page.locator("main h1").waitFor();
      await page.waitForFunction(() => ![...document.querySelectorAll("main .empty")].some((one) => one.textContent.startsWith("Waiting")));
      await page.evaluate(() => new Promise((done) => setTimeout(done, 300)));
      // The content security policy blocks script elements, but not scripts evaluated by the debugger.
      if (!(await page.evaluate(() => "axe" in window))) await page.evaluate(readFileSync(AXE, "utf8"));
      const { violations } = await page.evaluate(() => window.axe.run({ runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"] }));
      for (const one of violations) found.push(`${view}: ${one.id}: ${one.help}: ${one.nodes.slice(0, 3).map((n) => n.html.slice(0, 160)).join(" | ")}`);
    }
    assert.deepEqual(found, []);
    assert.deepEqual(errors, []);
  });
}

for (const [width, options] of [[320, { hasTouch: true, isMobile: true }], [390, { hasTouch: true, isMobile: true }], [1280, {}]]) {
  test(`nothing is wider than a screen of ${width} px, however long its name`, { skip }, async () => {
    const { page, errors } = await opened({ viewport: { width, height: 844 }, ...options });
    for (const view of [...VIEWS, "topics/%2Fimu", "nodes/%2Fplanner", "services/%2Fplan", `nodes/${encodeURIComponent(LONG)}`, `topics/${encodeURIComponent(`${LONG}/result`)}`]) {
      await page.goto(`${mock.url}#/${view}`);
      await page.locator("main h1").waitFor();
      await page.waitForFunction(() => ![...document.querySelectorAll("main .empty")].some((one) => one.textContent.startsWith("Waiting")));
      const [inside, outside] = await page.evaluate(() => [Math.max(document.documentElement.scrollWidth, document.querySelector("main").scrollWidth), innerWidth]);
      assert.ok(inside <= outside, `${view} is ${inside} px wide`);
    }
    assert.deepEqual(errors, []);
  });
}

test("on a phone the menu leads to the views", { skip }, async () => {
  const { page, errors } = await opened({ viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true }, "hosts");
  await page.getByRole("button", { name: "Menu" }).click();
  await page.getByRole("link", { name: "Topics" }).click();
  await page.getByRole("heading", { name: "Topics" }).waitFor();
  assert.deepEqual(errors, []);
});

test("all views are reachable by keyboard with a visible focus", { skip }, async () => {
  const { page } = await opened({ viewport: { width: 1280, height: 900 } });
  const focused = () => page.evaluate(() => {
    const at = document.activeElement;
    const style = getComputedStyle(at);
    return { text: (at.getAttribute("aria-label") ?? at.textContent).trim(), outline: style.outlineStyle !== "none" || at.matches("main, .box") };
  });
  await page.keyboard.press("Tab");
  assert.equal((await focused()).text, "Skip to the content");
  await page.keyboard.press("Enter");
  assert.equal(await page.evaluate(() => document.activeElement.id), "main");
  // From the top: each stop has a name and a visible focus, and all views are reachable.
  await page.reload();
  await page.getByText("live", { exact: true }).waitFor();
  const seen = [];
  for (let i = 0; i < 40; i++) {
    await page.keyboard.press("Tab");
    const stop = await focused();
    assert.ok(stop.text, `stop ${i} has no name`);
    assert.ok(stop.outline, `the focus on ${stop.text} cannot be seen`);
    seen.push(stop.text);
    if (stop.text === "Parameters") break;
  }
  for (const name of ["Stop", "Overview", "Topics", "Parameters"]) assert.ok(seen.includes(name), `${name} in ${seen}`);
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Parameters" }).waitFor();
  const gain = page.getByRole("slider", { name: "/pid/gain" });
  await gain.focus();
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("/");
  assert.equal(await page.evaluate(() => document.activeElement.type), "search");
  await page.keyboard.type("exposure");
  await page.getByText("/exposure_us").waitFor();
  await page.getByText("/pid/damping").waitFor({ state: "detached" });
});

test("a rejected value is reported and the current value is shown again", { skip }, async () => {
  const { page } = await opened({}, "params");
  const number = page.getByLabel("/pid/gain as a number");
  await number.fill("11");
  await number.press("Enter");
  await page.getByRole("alert").filter({ hasText: "above its maximum 10" }).waitFor();
  assert.notEqual(await number.inputValue(), "11");
});

test("controls that the role does not allow are disabled, and the view says why", { skip }, async () => {
  for (const role of ["look", "operate", "drive"]) {
    const own = await start(0, { hello: { token: "tablet", role } });
    const { page, errors } = await opened({}, "params", own.url);
    await page.getByRole("link", { name: role, exact: true }).waitFor();
    const why = (needed) => page.getByText(`The token tablet has the role ${role}; this needs the role ${needed}.`);
    assert.equal(await page.getByRole("slider", { name: "/pid/gain" }).isDisabled(), role === "look");
    assert.equal(await why("operate").count(), role === "look" ? 1 : 0);
    const stop = page.getByRole("button", { name: "Stop", exact: true });
    await page.waitForFunction(() => document.querySelector("button.stop").title.includes("over") || document.querySelector("button.stop").title.includes("role"));
    assert.equal(await stop.first().isDisabled(), role !== "drive");
    await page.goto(`${own.url}#/commands`);
    await page.getByRole("heading", { name: "Commands" }).waitFor();
    assert.equal(await why("drive").count(), role === "drive" ? 0 : 1);
    for (const view of ["state", "record", "launch", "services/%2Fplan"]) {
      await page.goto(`${own.url}#/${view}`);
      await page.locator("main h1").waitFor();
      assert.equal(await why("operate").count(), role === "look" ? 1 : 0, view);
    }
    assert.deepEqual(errors, []);
    await page.context().close();
    own.close();
  }
});

test("an edited number is sent exactly", { skip }, async () => {
  const { page } = await opened({}, "params");
  assert.equal(await page.getByLabel("/odometer").inputValue(), "1234567.25");
  // Rounded, it would arrive as 9007199254740992.
  const whole = page.getByLabel("/exposure_us as a number");
  await whole.fill("9007199254740993");
  await whole.press("Enter");
  await page.getByText("9007199254740993 has more digits than a page can send").waitFor();
  await whole.press("Escape");
  assert.equal(await whole.inputValue(), "8000");
});

test("frames in a cycle of parents are shown once", { skip }, async () => {
  const { page } = await opened({}, "transforms");
  await page.locator(".tree .key", { hasText: "base_link" }).waitFor();
  const keys = await page.locator(".tree .key").allTextContents();
  assert.deepEqual(keys.filter((key) => key === "a" || key === "b"), ["a", "b"]);
});

test("state and parameters of another host are shown with their age and the reason of a rejection", { skip }, async () => {
  const { page, errors } = await opened({}, "state");
  await page.getByLabel("Host", { exact: true }).selectOption("base");
  await page.getByText("@base does not answer: last known state, from").waitFor();
  await page.locator("[data-key='@base/dock/charge']").click();
  await page.getByRole("heading", { name: "@base/dock/charge" }).waitFor();
  await page.goto(`${mock.url}#/params`);
  await page.getByLabel("Host", { exact: true }).selectOption("base");
  await page.getByRole("link", { name: "@base/dock" }).waitFor();
  const number = page.getByLabel("/pid/damping as a number");
  await number.fill("1");
  await number.press("Enter");
  await page.getByRole("alert").filter({ hasText: "a rule of its robot.toml forbids it" }).waitFor();
  assert.equal(await page.getByRole("button", { name: "Reset" }).count(), 0);
  assert.deepEqual(errors, []);
});

test("a call shows feedback and result", { skip }, async () => {
  const { page, errors } = await opened({}, "services/%2Fdock");
  await page.getByLabel(/^max_speed/).fill("0.5");
  await page.getByRole("button", { name: "JSON" }).click();
  assert.match(await page.getByRole("textbox", { name: "Request" }).inputValue(), /"max_speed": 0.5/);
  await page.getByRole("button", { name: "Send the goal" }).click();
  await page.locator(".answers .end").waitFor();
  assert.equal(await page.locator(".answers .feedback").count(), 3);
  assert.match(await page.locator(".answers .reply").textContent(), /path_m/);
  assert.deepEqual(errors, []);
});

test("a request that is not an object stays text", { skip }, async () => {
  const { page, errors } = await opened({}, "services/%2Fdock");
  await page.getByRole("button", { name: "JSON" }).click();
  await page.getByRole("textbox", { name: "Request" }).fill("null");
  await page.getByRole("button", { name: "Form" }).click();
  await page.getByRole("alert").filter({ hasText: "needs a JSON object" }).waitFor();
  assert.equal(await page.getByRole("textbox", { name: "Request" }).inputValue(), "null");
  assert.deepEqual(errors, []);
});

test("without a server the page shows an alert and no live data, and reconnects", { skip }, async () => {
  let own = await start();
  const port = Number(new URL(own.url).port);
  const { page } = await opened({}, "topics", own.url);
  const cell = page.locator("tbody tr").first();
  await cell.waitFor();
  own.close();
  await page.getByRole("alert").filter({ hasText: "Not connected" }).waitFor();
  await page.locator(".page.stale").waitFor();
  assert.equal(await page.locator("header .live").textContent(), "not connected");
  assert.match(await page.title(), /^Not connected/);
  assert.ok(await page.locator("button.stop").isDisabled());
  assert.match(await page.getByRole("alert").textContent(), /The data shown is from/);
  own = await start(port);
  await page.getByText("live", { exact: true }).waitFor();
  await page.locator(".page.stale").waitFor({ state: "detached" });
  await cell.waitFor();
  own.close();
});

test("on a silent connection the page explains Stop, and Stop is enabled", { skip }, async () => {
  const own = await start();
  const { page } = await opened({}, "overview", own.url);
  await page.getByRole("button", { name: "Stop", exact: true }).waitFor();
  own.silence();
  await page.getByRole("alert").filter({ hasText: "No data from the server" }).waitFor();
  assert.match(await page.getByRole("alert").textContent(), /Stop may still arrive/);
  assert.ok(await page.getByRole("button", { name: "Stop", exact: true }).isEnabled());
  own.close();
});

test("Stop does not wait for figures", { skip }, async () => {
  const own = await start(0, { no_figures: true });
  const { page, errors } = await watched(await chrome.newContext());
  await page.goto(own.url);
  const stop = page.locator("header button.stop");
  await stop.click();
  await page.locator("header button.stop", { hasText: "Stopped" }).waitFor();
  assert.deepEqual(errors, []);
  own.close();
});

test("without receivers Stop is disabled with a reason", { skip }, async () => {
  const own = await start(0, { no_commands: true });
  const { page, errors } = await opened({ viewport: { width: 1280, height: 900 } }, "overview", own.url);
  const stop = page.getByRole("button", { name: "Stop", exact: true });
  await stop.waitFor();
  assert.ok(await stop.isDisabled());
  assert.equal(await stop.getAttribute("title"), "No node receives commands");
  await page.getByText("No node receives commands").waitFor();
  assert.deepEqual(errors, []);
  own.close();
});

test("boxes of the graph keep their places when others are added, and Fit shows all", { skip }, async () => {
  let come = false;
  const more_nodes = () => (come ? { "/new_sensor": [["/imu"], []], "/another": [[], ["/plan"]] } : {});
  const own = await start(0, { more_nodes });
  const { page, errors } = await opened({ viewport: { width: 1280, height: 800 } }, "overview", own.url);
  const places = () => page.locator(".box[data-node]").evaluateAll((boxes) => Object.fromEntries(boxes.map((box) => [box.dataset.node, [box.querySelector("rect").getAttribute("x"), box.querySelector("rect").getAttribute("y")].join()])));
  await page.locator('.box[data-node="/planner"]').waitFor();
  const before = await places();
  come = true;
  await page.locator('.box[data-node="/new_sensor"]').waitFor();
  await page.locator('.box[data-node="/another"]').waitFor();
  const after = await places();
  for (const [node, place] of Object.entries(before)) assert.equal(after[node], place, `${node} has moved`);
  await page.getByRole("button", { name: "Fit" }).click();
  await page.locator(".graph-frame.fit").waitFor();
  const outside = await page.evaluate(() => {
    const frame = document.querySelector(".graph-frame").getBoundingClientRect();
    return [...document.querySelectorAll(".box rect")].map((rect) => rect.getBoundingClientRect()).filter((r) => r.left < frame.left - 1 || r.right > frame.right + 1 || r.top < frame.top - 1 || r.bottom > Math.min(frame.bottom, innerHeight) + 1).length;
  });
  assert.equal(outside, 0);
  assert.deepEqual(errors, []);
  own.close();
});

test("numbers have their units, in the message and in the plot", { skip }, async () => {
  const { page, errors } = await opened({ viewport: { width: 1280, height: 900 } }, "topics/%2Fimu");
  const line = (key) => page.locator(".message .tree li", { has: page.locator(".key", { hasText: new RegExp(`^${key}$`) }) }).last();
  assert.match(await line("temperature").textContent(), /36\.5 °C$/);
  assert.match(await line("exposure_ns").textContent(), /1843000 ns · 1\.84 ms$/);
  assert.match(await line("stamp_ns").textContent(), /1790000000123456789 ns · 21 Sept? 2026/);
  assert.match(await line("odometer").textContent(), /12345678901$/);
  await page.getByRole("button", { name: /^linear_acceleration\.x:/ }).click();
  await page.locator(".plot .value", { hasText: "m/s²" }).waitFor();
  assert.deepEqual(errors, []);
});

test("a depth image has a legend", { skip }, async () => {
  const { page, errors } = await opened({}, "topics/%2Fcamera%2Fdepth");
  await page.getByRole("img", { name: "brightest 512 mm, darkest 4830 mm, black not measured" }).waitFor();
  await page.locator(".picture figcaption", { hasText: "16UC1" }).waitFor();
  assert.deepEqual(errors, []);
});

test("a chart without points shows a message", { skip }, async () => {
  const { page, errors } = await opened({ viewport: { width: 1280, height: 900 } }, "topics/%2Fstop");
  await page.getByRole("region", { name: "Latency" }).locator(".chart.no-data").waitFor();
  assert.equal(await page.getByRole("region", { name: "Rate" }).locator(".chart.no-data").count(), 0);
  assert.deepEqual(errors, []);
});

test("parameters of a stopped node are not shown as live", { skip }, async () => {
  const { page, errors } = await opened({}, "params");
  const panel = (name) => page.locator(".panel", { has: page.getByRole("link", { name, exact: true }) });
  await panel("/gripper").getByText("not running", { exact: true }).waitFor();
  assert.ok(await panel("/gripper").evaluate((one) => one.classList.contains("dead")));
  assert.ok(!(await panel("/controller").evaluate((one) => one.classList.contains("dead"))));
  assert.deepEqual(errors, []);
});

test("tables on a phone show the details of a name", { skip }, async () => {
  const { page, errors } = await opened({ viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true }, "topics");
  for (const [view, column] of [["topics", "Rate"], ["nodes", "State"], ["record", "Do"], ["launch", "Do"]]) {
    await page.goto(`${mock.url}#/${view}`);
    const head = page.locator("thead th", { hasText: column });
    await head.waitFor();
    const right = await head.evaluate((one) => one.getBoundingClientRect().right);
    assert.ok(right <= 390, `${column} of ${view} ends at ${right}`);
  }
  assert.deepEqual(errors, []);
});

test("recordings are listed, downloaded and played", { skip }, async () => {
  const { page, errors } = await opened({}, "record");
  const row = page.locator("tbody tr", { hasText: "dock.mcap" });
  assert.match(await row.textContent(), /48\.2 MB/);
  assert.equal(await row.getByRole("link", { name: "Download dock.mcap" }).getAttribute("href"), "/recordings/dock.mcap");
  await row.getByRole("button", { name: "Play dock.mcap" }).click();
  await page.getByRole("button", { name: "Pause" }).click();
  await page.getByRole("button", { name: "Resume" }).waitFor();
  assert.ok(await row.getByRole("button", { name: "Play dock.mcap" }).isDisabled());
  await page.getByRole("button", { name: "Stop playing" }).click();
  await page.getByText("Played dock.mcap: 9123 messages").waitFor();
  assert.deepEqual(errors, []);
});

test("the theme button changes the colours", { skip }, async () => {
  const { page } = await opened({ colorScheme: "light" });
  const ground = () => page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
  const light = await ground();
  const button = page.getByRole("button", { name: /^Colours/ });
  await button.click();
  assert.equal(await ground(), light);
  await button.click();
  assert.notEqual(await ground(), light);
  await page.reload();
  assert.notEqual(await ground(), light);
});

test("a hundred topics use little CPU time", { skip }, async (t) => {
  const many = await start(0, { topics: 100 });
  const { page } = await opened({ viewport: { width: 1280, height: 900 } }, "topics", many.url);
  await page.locator("tbody tr").nth(99).waitFor();
  const session = await page.context().newCDPSession(page);
  await session.send("Performance.enable");
  const busy = async () => {
    const { metrics } = await session.send("Performance.getMetrics");
    const value = (name) => metrics.find((m) => m.name === name).value;
    return { task: value("TaskDuration"), at: value("Timestamp") };
  };
  const first = await busy();
  await page.evaluate(() => new Promise((done) => setTimeout(done, 5000)));
  const last = await busy();
  const share = (last.task - first.task) / (last.at - first.at);
  // CPU share of the main thread, by the wall clock of a shared machine: a figure, not a limit.
  t.diagnostic(`${(share * 100).toFixed(1)} % of a core`);
  console.log(`step-note: 100 topics cost the page ${(share * 100).toFixed(1)} % of a core`);
  many.close();
});
