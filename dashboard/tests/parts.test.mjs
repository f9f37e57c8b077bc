// Parts of the page that need no browser: formatting of figures, the graph layout, the merging of plots.

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
});

test("numbers of messages are written without exponents within a readable range", async () => {
  const units = await source("units.ts");
  const all = [[0, "0"], [-0.35, "-0.35"], [1234567.25, "1234567.25"], [12345678901, "12345678901"], [1e15, "1000000000000000"], [1.79e18, "1790000000000000000"], [1e-7, "0.0000001"], [2.5e-9, "0.0000000025"], [0.00012345678, "0.0001235"], [1e300, "1.0000e+300"], [1e-30, "1.0000e-30"]];
  for (const [value, text] of all) assert.equal(units.number(value), text);
  assert.equal(units.brief(123.456), "123.5");
  assert.equal(units.brief(1790000000123), "1790000000123");
  assert.equal(units.time_ns(1_843), "1.84 µs");
  assert.equal(units.time_ns(12), null);
  assert.match(units.time_ns(1.79e18), /^21 Sept? 2026 \d\d:\d\d:\d\d\.000$/);
});

test("a gap is an interval longer than usual, at any rate", async () => {
  const { is_gap } = await source("draw/points.ts");
  const steps = [];
  const gaps = (all) => all.filter((step) => is_gap(steps, step));
  assert.deepEqual(gaps([0.02, 0.02, 0.04, 0.02, 0.02]), []);
  assert.deepEqual(gaps([0.09, 3, 0.02]), [3]);
  // A slower rate is a gap only until it is the usual rate.
  assert.ok(gaps(Array(20).fill(1)).length < 10);
  assert.deepEqual(gaps([1, 1, 2]), []);
});

test("equal labels are merged, and points without a neighbour are found", async () => {
  const { alone, labels } = await source("draw/points.ts");
  const { duration_ns } = await source("units.ts");
  assert.deepEqual(labels([0, 0.4, 0.8, 1], duration_ns), ["0 ns", "", "1 ns", ""]);
  const column = [null, 1, null, undefined, 2, undefined, 3, null, 4];
  assert.deepEqual(alone({ data: [[], column] }, 1), [1, 8]);
});

test("only integers that JavaScript would round are rejected", async () => {
  const { typed_json } = await source("typed.ts");
  for (const text of ["9007199254740993", "[1, -9007199254740993]", '{"a": [{"b": 18446744073709551615}]}']) assert.throws(() => typed_json(text), /more digits/, text);
  for (const text of ["9007199254740991", "-1", "1e300", "0.1", "true", "null", '"9007199254740993"', '"a \\" 9007199254740993"', '{"9007199254740993": 1.25}']) assert.deepEqual(typed_json(text), JSON.parse(text));
  assert.throws(() => typed_json("[1,"), SyntaxError);
});

function overlaps(a, b) {
  return a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height;
}

const box = (id) => ({ id, width: 100, height: 40 });

test("the graph has one direction and no overlapping boxes, also with cycles", async () => {
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

test("boxes keep their places while others are added, removed and return", async () => {
  const { layout } = await source("graph/layout.ts");
  const { extend } = await source("graph/extend.ts");
  const ids = ["a", "b", "c", "d", "e", "f"];
  const edges = [["a", "b"], ["b", "c"], ["c", "d"], ["a", "e"], ["e", "f"]];
  for (const way of ["right", "down"]) {
    const first = layout(ids.map(box), edges, way);
    const places = new Map(first.placed);
    const more = [...ids, "g", "h", "k", "alone"];
    const more_edges = [...edges, ["g", "a"], ["b", "h"], ["h", "k"], ["d", "a"]];
    const second = extend(places, more.map(box), more_edges, first.routes, way);
    for (const id of ids) assert.deepEqual(second.placed.get(id), first.placed.get(id), `${id} has moved, ${way}`);
    const boxes = [...second.placed.values()];
    for (const [i, one] of boxes.entries()) {
      const [x, y] = [one.x - second.left, one.y - second.top];
      assert.ok(x >= 0 && y >= 0 && x + one.width <= second.width + 0.1 && y + one.height <= second.height + 0.1, `${one.id} is in the picture`);
      for (const other of boxes.slice(i + 1)) assert.ok(!overlaps(one, other), `${one.id} and ${other.id} overlap, ${way}`);
    }
    const along = way === "right" ? "x" : "y";
    const at = (id) => second.placed.get(id)[along];
    assert.ok(at("g") < at("a") && at("b") < at("h") && at("h") < at("k"));
    assert.equal(second.routes.length, more_edges.length);
    // One box is removed, and returns.
    for (const [id, one] of second.placed) places.set(id, one);
    const third = extend(places, more.filter((id) => id !== "b").map(box), more_edges, second.routes, way);
    assert.ok(!third.placed.has("b"));
    assert.deepEqual(extend(places, more.map(box), more_edges, third.routes, way).placed.get("b"), first.placed.get("b"));
    // Most boxes are new: the caller computes a new layout.
    assert.equal(extend(new Map([["a", box("a")]]), ids.map(box), edges, [], way), null);
  }
});

test("the layout of a hundred nodes and topics is deterministic", async () => {
  const { layout } = await source("graph/layout.ts");
  const ids = Array.from({ length: 200 }, (_x, i) => `v${i}`);
  const edges = ids.flatMap((id, i) => [[id, `v${(i * 7 + 3) % 200}`], [id, `v${(i * 13 + 1) % 200}`]]);
  const one = layout(ids.map(box), edges, "right");
  const other = layout([...ids].reverse().map(box), edges, "right");
  assert.deepEqual([...one.placed].sort(), [...other.placed].sort());
});

test("transforms are relative to the root, and cycles of parents end", async () => {
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
