// Checks the contrast of each pair of adjacent colours against WCAG 2.1 AA: 4.5 for text, 3 for edges of
// controls and lines of plots.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";

const css = await readFile(new URL("../src/palette.css", import.meta.url), "utf8");

function palette(scheme) {
  const colours = {};
  for (const [, name, value] of css.matchAll(/--([\w-]+):\s*([^;]+);/g)) {
    const pair = /light-dark\((#\w{6}),\s*(#\w{6})\)/.exec(value);
    colours[name] = pair ? pair[scheme === "light" ? 1 : 2] : value.trim();
  }
  return colours;
}

/** Relative luminance, WCAG 2.1. */
function luminance(hex) {
  const parts = [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16) / 255);
  const [r, g, b] = parts.map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

export function contrast(a, b) {
  const [high, low] = [luminance(a), luminance(b)].sort((x, y) => y - x);
  return (high + 0.05) / (low + 0.05);
}

const GROUNDS = ["bg", "panel", "raised", "hover"];
const TEXT = [
  ...["text", "dim", "accent", "ok", "warn", "bad"].flatMap((ink) => GROUNDS.map((ground) => [ink, ground])),
  ["accent", "accent-soft"], ["text", "accent-soft"], ["dim", "accent-soft"],
  ["bad", "bad-soft"], ["text", "bad-soft"], ["dim", "bad-soft"], ["accent", "bad-soft"],
  ["warn", "warn-soft"], ["text", "warn-soft"], ["dim", "warn-soft"], ["accent", "warn-soft"],
  ["ok", "ok-soft"], ["on-fill", "accent-fill"], ["on-fill", "bad-fill"], ["plot-2", "panel"],
];
const LINES = [
  ...[1, 2, 3, 4, 5, 6].map((n) => [`plot-${n}`, "panel"]),
  ["edge", "panel"], ["accent", "panel"], ["accent", "bg"], ["bad-fill", "panel"],
];

for (const scheme of ["light", "dark"]) {
  test(`${scheme}: texts and lines have the contrast of WCAG AA`, () => {
    const colours = palette(scheme);
    const wrong = [];
    for (const [pairs, least] of [[TEXT, 4.5], [LINES, 3]]) {
      for (const [ink, ground] of pairs) {
        assert.match(colours[ink] ?? "missing", /^#\w{6}$/, ink);
        assert.match(colours[ground] ?? "missing", /^#\w{6}$/, ground);
        const found = contrast(colours[ink], colours[ground]);
        if (found < least) wrong.push(`${ink} on ${ground}: ${found.toFixed(2)}, at least ${least}`);
      }
    }
    assert.deepEqual(wrong, []);
  });
}

test("the luminance matches WCAG", () => {
  assert.equal(contrast("#000000", "#ffffff"), 21);
  assert.equal(contrast("#777777", "#ffffff").toFixed(2), "4.48");
});
