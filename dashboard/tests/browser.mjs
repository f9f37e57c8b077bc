// A headless Chromium with its own profile and without network requests of its own.
import { readFile } from "node:fs/promises";
import { chromium } from "playwright-core";

export const CHROMIUM = process.env.CHROMIUM ?? "/usr/bin/chromium";

const FLAGS = [
  "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync",
];

export const VIEWS = ["overview", "topics", "plots", "transforms", "nodes", "problems", "logs", "commands", "params", "state", "services", "record", "launch", "hosts"];

/** Playwright creates a temporary profile folder, and removes it afterwards. */
export function browser() {
  // The browser cannot tell that a page served by a test is local.
  const local = process.env.PAGE_FROM_DIST ? ["--disable-features=LocalNetworkAccessChecks"] : [];
  return chromium.launch({ executablePath: CHROMIUM, args: [...FLAGS, ...local] });
}

/** A page with its errors: console errors, exceptions, requests to other servers. */
export async function watched(context) {
  const page = await context.newPage();
  const errors = [];
  if (process.env.PAGE_FROM_DIST) await page.route(/\/(assets\/.*)?$/, from_dist);
  page.on("console", (message) => message.type() === "error" && errors.push(message.text()));
  page.on("pageerror", (error) => errors.push(String(error)));
  page.on("request", (request) => {
    const { protocol, hostname } = new URL(request.url());
    if (/^(http|ws)/.test(protocol) && hostname !== "127.0.0.1") errors.push(`asks ${request.url()}`);
  });
  return { page, errors };
}

/** `PAGE_FROM_DIST=1` serves the last built page instead of the one in `rnet`, for work without cargo. */
async function from_dist(route) {
  const path = new URL(route.request().url()).pathname;
  const file = path === "/" ? "index.html" : path.slice(1);
  const contentType = { html: "text/html", css: "text/css", js: "text/javascript" }[file.split(".").pop()];
  await route.fulfill({ contentType, body: await readFile(new URL(`../dist/${file}`, import.meta.url)) });
}
