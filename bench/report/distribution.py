"""Distributions of times as the harness writes them: buckets of (value, how many), ascending."""

import math
from itertools import accumulate


class Distribution:
    """Times in ns. `values` ascend; `counts` go with them."""

    def __init__(self, values, counts, greatest, total):
        self.values = values
        self.counts = counts
        self.count = sum(counts)
        self.greatest = greatest
        self.total = total

    def quantile(self, q):
        """The value in ns that a share `q` of all is not above, by rank as in the harness."""
        if not self.count:
            return None
        rank = min(max(math.ceil(self.count * q), 1), self.count)
        for value, seen in zip(self.values, accumulate(self.counts)):
            if seen >= rank:
                return min(value, self.greatest)
        return self.greatest

    def quantile_us(self, q):
        """The quantile in µs."""
        ns = self.quantile(q)
        return None if ns is None else ns / 1e3

    def max_us(self):
        """The greatest, exact, µs."""
        return self.greatest / 1e3 if self.count else None

    def mean_us(self):
        """The mean, exact, µs."""
        return self.total / 1e3 / self.count if self.count else None


def merged(raws):
    """One distribution of several raw ones (or of `Distribution`s), nothing left out."""
    together, greatest, total = {}, 0, 0
    for raw in raws:
        if isinstance(raw, Distribution):
            pairs, most, added = zip(raw.values, raw.counts), raw.greatest, raw.total
        elif raw:
            flat = raw.get("buckets") or []
            pairs, most, added = zip(flat[::2], flat[1::2]), raw["max"], raw["sum"]
        else:
            continue
        for value, count in pairs:
            together[value] = together.get(value, 0) + count
        greatest = max(greatest, most)
        total += added
    values = sorted(together)
    return Distribution(values, [together[v] for v in values], greatest, total)
