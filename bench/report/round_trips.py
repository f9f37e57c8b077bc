"""Study 2: round trips by bands of size, and the study's own files of times.

A repetition does every fifth size (every tenth at the slower rates), beginning with its own, so it
has sizes of every band; five of them together have each size once (half of them).
"""

import math
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True)
class Band:
    """Sizes from `least` to below `end`, bytes."""

    name: str
    least: int
    end: int


KIB = 1024
WORKLOADS = ("study2", "study2-slow")
BANDS = [
    Band("< 64 KiB", 0, 64 * KIB),
    Band("64–512 KiB", 64 * KIB, 512 * KIB),
    Band("0.5–1 MiB", 512 * KIB, 1024 * KIB),
    Band("≥ 1 MiB", 1024 * KIB, 1 << 62),
]


def band_median_us(phase, band):
    """The median round trip of a repetition's sizes within a band, µs."""
    times = [ns for size, ns in phase.round_trips() if band.least <= size < band.end]
    return median(times) / 1e3 if times else None


def max_ms(phase):
    """The longest round trip of a repetition, ms."""
    times = [ns for _, ns in phase.round_trips()]
    return max(times) / 1e6 if times else None


def quantile_us(phase, q):
    """A quantile of a repetition's round trips, µs: the time at the rank, rounded up."""
    times = sorted(ns for _, ns in phase.round_trips())
    return times[max(1, math.ceil(len(times) * q)) - 1] / 1e3 if times else None


def periods(data):
    """(workload, variant) of each period that was run."""
    return [(w, v) for w in WORKLOADS for v in data.variants(w)]


def all_of(data, workload, variant, system):
    """(bytes, ns) of all repetitions, by size."""
    cells = [data.cell(workload, variant, system, label) for label in data.phases(workload)]
    return sorted(
        trip
        for cell in cells
        for phase in cell.values()
        for trip in map(tuple, phase.round_trips())
    )


def write_files(data, out):
    """Writes `study2/<system>-<period>.txt` as the study has it; returns how many files."""
    written = 0
    for workload, variant in periods(data):
        for system in data.rows(workload):
            trips = all_of(data, workload, variant, system)
            if not trips:
                continue
            folder = out / "study2"
            folder.mkdir(exist_ok=True)
            lines = ["# size of the message in KiB (the study's iteration), round trip in ms"]
            lines += [f"{size / KIB:g} {ns / 1e6:.6f}" for size, ns in trips]
            file = folder / f"{system}-{variant.replace(' ', '')}.txt"
            file.write_text("\n".join(lines) + "\n", encoding="utf-8")
            written += 1
    return written
