"""Computes the figures of calls again, with none of the report's code."""

import math


def call_figure(name, times):
    """A percentile (`p99`) or `max` of round trips in ns, in µs; `None` where there is none."""
    if not times:
        return None
    if name == "max":
        return max(times) / 1000
    share = round(float(name[1:]) / 100, 5)
    return sorted(times)[max(1, math.ceil(len(times) * share)) - 1] / 1000
