"""Times as they stand in the raw data: bench/harness/src/result.rs, `Distribution`."""

from __future__ import annotations

from array import array

import numpy as np

# Values are kept to 1 in 128.
_KEPT_BITS = 8
_GREATEST_NS = 120_000_000_000


def distribution(times_ns: array) -> dict:
    """The count, ends, sum and histogram of times in ns."""
    if not times_ns:
        return {"count": 0, "min": 0, "max": 0, "sum": 0, "buckets": []}
    times = np.frombuffer(times_ns, np.int64)
    kept = np.clip(times, 1, _GREATEST_NS)
    # Each power of two has 128 buckets; the file has a value as the upper end of its bucket.
    shift = np.maximum(np.frexp(kept.astype(np.float64))[1] - _KEPT_BITS, 0)
    upper = (((kept >> shift) + 1) << shift) - 1
    values, counts = np.unique(upper, return_counts=True)
    return {
        "count": len(times),
        "min": int(times.min()),
        "max": int(times.max()),
        "sum": int(times.sum()),
        "buckets": np.stack([values, counts], axis=1).ravel().tolist(),
    }
