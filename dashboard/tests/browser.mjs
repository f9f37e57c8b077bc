// A headless Chromium with a profile of its own, which asks nobody on the network for anything.
import { chromium } from "playwright-core";

export const CHROMIUM = process.env.CHROMIUM ?? "/usr/bin/chromium";

const FLAGS = [
  "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync",
];

export const VIEWS = ["overview", "topics", "plots", "transforms", "nodes", "problems", "logs", "commands", "params", "state", "services", "record", "launch", "hosts"];

/** Playwright gives it a fresh folder for its profile, and removes that afterwards. */
export function browser() {
  return chromium.launch({ executablePath: CHROMIUM, args: FLAGS });
}

/** A page, and what goes wrong in it: errors of the console, exceptions, requests to other places. */
export async function watched(context) {
  const page = await context.newPage();
  const errors = [];
  page.on("console", (message) => message.type() === "error" && errors.push(message.text()));
  page.on("pageerror", (error) => errors.push(String(error)));
  page.on("request", (request) => {
    const { protocol, hostname } = new URL(request.url());
    if (/^(http|ws)/.test(protocol) && hostname !== "127.0.0.1") errors.push(`asks ${request.url()}`);
  });
  return { page, errors };
}
