// A headless Chromium with a profile of its own, which asks nobody on the network for anything.
import { chromium } from "playwright-core";

export const CHROMIUM = process.env.CHROMIUM ?? "/usr/bin/chromium";

const FLAGS = [
  "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync",
];

/** Playwright gives it a fresh folder for its profile, and removes that afterwards. */
export function browser() {
  return chromium.launch({ executablePath: CHROMIUM, args: FLAGS });
}
