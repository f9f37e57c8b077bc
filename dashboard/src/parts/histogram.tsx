// The distribution of latencies: bars on a logarithmic axis, because the rare slow ones matter.

import * as units from "../units";

type Bucket = [low_ns: number, high_ns: number, n: number];

const WIDTH = 560;
const HEIGHT = 150;
const FOOT = 22;
const BINS_PER_DECADE = 8;

export function Histogram({ hists }: { hists: Bucket[][] }) {
  const sums = new Map<number, number>();
  let all = 0;
  for (const hist of hists) {
    for (const [low, high, n] of hist) {
      // A bucket without an upper bound contains the slowest messages.
      const middle = Math.max(1, high > low * 4 ? low : (low + high) / 2);
      const bin = Math.floor(Math.log10(middle) * BINS_PER_DECADE);
      sums.set(bin, (sums.get(bin) ?? 0) + n);
      all += n;
    }
  }
  if (!all) return <p class="empty dim">No latencies: no subscriber received a message in the last minute.</p>;
  const bins = [...sums.keys()].sort((a, b) => a - b);
  const first = Math.floor(bins[0]! / BINS_PER_DECADE) * BINS_PER_DECADE;
  const last = Math.ceil((bins[bins.length - 1]! + 1) / BINS_PER_DECADE) * BINS_PER_DECADE;
  const step = WIDTH / (last - first);
  // The square root makes a single slow message visible beside a million fast ones.
  const tall = Math.sqrt(Math.max(...sums.values()));
  const decades = [];
  for (let bin = first; bin <= last; bin += BINS_PER_DECADE) decades.push(bin);
  const from = (bin: number) => units.duration_ns(10 ** (bin / BINS_PER_DECADE));
  const quantiles = [0.5, 0.99].map((q) => [q, quantile(bins, sums, all * q)] as const);
  const says = `Latencies of ${units.count(all)} messages, from ${from(bins[0]!)} to ${from(bins[bins.length - 1]! + 1)}`;
  return (
    <svg class="histogram" viewBox={`0 0 ${WIDTH} ${HEIGHT + FOOT}`} role="img" aria-label={says}>
      {decades.map((bin) => (
        <g key={bin}>
          <line x1={(bin - first) * step} x2={(bin - first) * step} y1={0} y2={HEIGHT} class="grid" />
          <text x={(bin - first) * step} y={HEIGHT + 15} text-anchor={bin === first ? "start" : bin === last ? "end" : "middle"}>{from(bin)}</text>
        </g>
      ))}
      {bins.map((bin) => {
        const height = Math.max(1.5, (Math.sqrt(sums.get(bin)!) / tall) * (HEIGHT - 12));
        return (
          <rect key={bin} class="bar" x={(bin - first) * step + 1} y={HEIGHT - height} width={Math.max(1, step - 2)} height={height}>
            <title>{`${from(bin)} to ${from(bin + 1)}: ${units.count(sums.get(bin)!)}`}</title>
          </rect>
        );
      })}
      <line x1={0} x2={WIDTH} y1={HEIGHT} y2={HEIGHT} class="axis" />
      {quantiles.map(([q, bin]) => (
        <g key={q}>
          <line class="mark" x1={(bin + 1 - first) * step} x2={(bin + 1 - first) * step} y1={q === 0.5 ? 0 : 14} y2={HEIGHT} />
          <text class="mark-text" x={(bin + 1 - first) * step + 4} y={q === 0.5 ? 10 : 24}>{q === 0.5 ? "p50" : "p99"}</text>
        </g>
      ))}
    </svg>
  );
}

function quantile(bins: number[], sums: Map<number, number>, rank: number): number {
  let seen = 0;
  for (const bin of bins) {
    seen += sums.get(bin)!;
    if (seen >= rank) return bin;
  }
  return bins[bins.length - 1]!;
}
