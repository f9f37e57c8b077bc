// What of the page needs no browser: figures in words, the layout of the graph, the merging of plots.

import assert from "node:assert/strict";
import { test } from "node:test";
import { source } from "./source.mjs";

test("figures have three digits and a unit", async () => {
  const units = await source("units.ts");
  assert.equal(units.rate(0), "0 Hz");
  assert.equal(units.rate(999.9), "1.00 kHz");
  assert.equal(units.rate(48_000), "48.0 kHz");
  assert.equal(units.bandwidth(28_100_000), "28.1 MB/s");
  assert.equal(units.duration_ns(1_843), "1.84 µs");
  assert.equal(units.duration_ns(null), "–");
  assert.equal(units.duration_s(12.5), "12.5 s");
  assert.equal(units.span(3_700), "1 h 1 min");
  assert.equal(units.percent(0.034), "3.4 %");
  assert.equal(units.count(1_234_567), "1\u2009234\u2009567");
  assert.equal(units.number(-0.35), "-0.35");
  assert.equal(units.number(1e-7), "1.0000e-7");
});

test("a whole number that JavaScript would round is refused, and nothing else", async () => {
  const { typed_json } = await source("typed.ts");
  for (const text of ["9007199254740993", "[1, -9007199254740993]", '{"a": [{"b": 18446744073709551615}]}']) assert.throws(() => typed_json(text), /more digits/, text);
  for (const text of ["9007199254740991", "-1", "1e300", "0.1", "true", "null", '"9007199254740993"', '"a \\" 9007199254740993"', '{"9007199254740993": 1.25}']) assert.deepEqual(typed_json(text), JSON.parse(text));
  assert.throws(() => typed_json("[1,"), SyntaxError);
});

function overlaps(a, b) {
  return a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height;
}

const box = (id) => ({ id, width: 100, height: 40 });

test("the graph goes one way, without boxes upon each other, also with circles", async () => {
  const { layout, path } = await source("graph/layout.ts");
  const ids = ["a", "b", "c", "d", "e", "f", "alone"];
  const edges = [["a", "b"], ["b", "c"], ["c", "d"], ["d", "b"], ["a", "d"], ["e", "c"], ["a", "f"], ["f", "d"], ["c", "c"]];
  for (const way of ["right", "down"]) {
    const { placed, routes, width, height } = layout(ids.map(box), edges, way);
    assert.deepEqual([...placed.keys()].sort(), [...ids].sort());
    const boxes = [...placed.values()];
    for (const [i, one] of boxes.entries()) {
      assert.ok(one.x >= 0 && one.y >= 0 && one.x + one.width <= width + 0.1 && one.y + one.height <= height + 0.1, one.id);
      for (const other of boxes.slice(i + 1)) assert.ok(!overlaps(one, other), `${one.id} and ${other.id} overlap, ${way}`);
    }
    const along = way === "right" ? "x" : "y";
    const behind = (from, to) => placed.get(from)[along] < placed.get(to)[along];
    assert.ok(behind("a", "b") && behind("b", "c") && behind("a", "f") && behind("e", "c"));
    for (const route of routes) assert.doesNotMatch(path(route.points, way), /NaN|undefined/);
  }
});

test("the graph of a hundred nodes and topics is the same each time", async () => {
  const { layout } = await source("graph/layout.ts");
  const ids = Array.from({ length: 200 }, (_x, i) => `v${i}`);
  const edges = ids.flatMap((id, i) => [[id, `v${(i * 7 + 3) % 200}`], [id, `v${(i * 13 + 1) % 200}`]]);
  const one = layout(ids.map(box), edges, "right");
  const other = layout([...ids].reverse().map(box), edges, "right");
  assert.deepEqual([...one.placed].sort(), [...other.placed].sort());
});

test("transforms are seen from the root, and a circle of parents ends", async () => {
  const { world } = await source("draw/scenes.ts");
  const half = Math.SQRT1_2;
  const frames = [
    { frame: "b", parent: "a", translation: [1, 0, 0], rotation: [0, 0, half, half] },
    { frame: "c", parent: "b", translation: [1, 0, 0], rotation: [0, 0, 0, 1] },
    { frame: "x", parent: "y", translation: [1, 0, 0], rotation: [0, 0, 0, 1] },
    { frame: "y", parent: "x", translation: [1, 0, 0], rotation: [0, 0, 0, 1] },
  ];
  const at = world(frames).get("c").at.map((v) => Math.round(v * 1000) / 1000);
  assert.deepEqual(at, [1, 1, 0]);
});
