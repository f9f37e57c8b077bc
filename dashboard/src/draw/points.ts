// Gaps, isolated points and axis labels of charts.

/** The usual interval is the median of this many intervals. */
const STEPS = 15;
/** An interval longer than this many usual ones is a gap. */
const GAP_STEPS = 5;
/** Shorter intervals are never a gap. */
const LEAST_GAP_S = 0.1;

/** Whether the interval before a point is a gap. Adds it to `steps`, the recent intervals. */
export function is_gap(steps: number[], step: number): boolean {
  if (!Number.isFinite(step)) return false;
  const usual = [...steps].sort((a, b) => a - b)[steps.length >> 1] ?? Infinity;
  steps.push(step);
  if (steps.length > STEPS) steps.shift();
  return step > Math.max(GAP_STEPS * usual, LEAST_GAP_S);
}

/** Axis labels, without repetitions. */
export function labels(splits: number[], format: (value: number) => string): string[] {
  return splits.map(format).map((label, i, all) => (label === all[i - 1] ? "" : label));
}

/** Indices of points without a neighbour, which a line does not show. */
export function alone(u: { data: ArrayLike<unknown>[] }, series: number): number[] {
  const all = u.data[series] as (number | null | undefined)[];
  const known = all.map((value, i) => ({ value, i })).filter(({ value }) => value !== undefined);
  return known.filter(({ value }, i) => value !== null && known[i - 1]?.value == null && known[i + 1]?.value == null).map(({ i }) => i);
}
