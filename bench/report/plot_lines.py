"""Plots with a line for each system: over size, over the number of readers."""

from statistics import median

import matplotlib.pyplot as plt

import round_trips
import tables
from numbers_text import median_of
from plot_style import WIDTH_IN, line_style, name_ends, plain_ticks

# Number of neighbouring sizes in a running median.
WINDOW = 31


def canvas(title, systems):
    """A figure with space for names at the right."""
    height = max(6.5, 0.21 * len(systems) + 2.0)
    figure = plt.figure(figsize=(WIDTH_IN, height), layout="none")
    axes = figure.add_axes((0.075, 0.10, 0.66, 0.80))
    figure.suptitle(title, x=0.01, ha="left")
    return figure, axes


def study2(data):
    """Round trip over size, one plot for each period."""
    for workload, variant in round_trips.periods(data):
        systems = [s for s in data.rows(workload) if round_trips.all_of(data, workload, variant, s)]
        if not systems:
            continue
        title = f"Round trip of growing messages, one every {variant}"
        figure, axes = canvas(title, systems)
        styles, ends = line_style(data, systems), {}
        for system in systems:
            trips = round_trips.all_of(data, workload, variant, system)
            x, y = [size / 1024 for size, _ in trips], [ns / 1e6 for _, ns in trips]
            axes.scatter(x, y, s=2, alpha=0.10, color=styles[system]["color"], linewidths=0)
            half = WINDOW // 2
            smooth = [median(y[max(0, i - half) : i + half + 1]) for i in range(len(y))]
            axes.plot(x, smooth, **styles[system])
            ends[system] = (x[-1], smooth[-1])
        axes.set_yscale("log")
        axes.set_ylim(bottom=min(end for _, end in ends.values()) / 20)
        axes.autoscale(axis="y")
        plain_ticks(axes.yaxis)
        axes.set_xlabel("size of the message, KiB")
        axes.set_ylabel("round trip, ms")
        axes.set_title(
            f"lines: running median of {WINDOW} sizes; points: every round trip", loc="left"
        )
        name_ends(data, axes, ends, styles)
        yield workload, f"study2-{variant.replace(' ', '')}.png", title, figure


def over(data, columns, workload, title, xlabel, ticks, log_x):
    """A plot of the p50 in `columns`, at the places `ticks` (number, text)."""
    lines = {}
    for system in data.rows(workload):
        medians = [median_of(c.values(data, workload, system).values()) for c in columns]
        points = [(x, m) for (x, _), m in zip(ticks, medians) if m]
        if points:
            lines[system] = points
    if not lines:
        return None
    figure, axes = canvas(title, lines)
    styles = line_style(data, lines)
    for system, points in lines.items():
        axes.plot(*zip(*points), marker="o", markersize=4, **styles[system])
    axes.set_yscale("log")
    if log_x:
        axes.set_xscale("log", base=2)
    axes.set_xticks([x for x, _ in ticks], [text for _, text in ticks])
    axes.set_xticks([], minor=True)
    plain_ticks(axes.yaxis)
    axes.set_xlabel(xlabel)
    axes.set_ylabel("one-way latency, p50, µs")
    name_ends(data, axes, {s: points[-1] for s, points in lines.items()}, styles)
    return figure


def length_of(data, workload, label):
    """Bytes of a message of a phase."""
    for w, variant, system, phase in data.all_cells():
        if (w, phase) == (workload, label):
            return next(iter(data.cell(w, variant, system, phase).values())).raw.get("len")
    return None


def sizes(data):
    """p50 over size."""
    for variant in data.variants("sizes"):
        labels = [p for p in data.phases("sizes") if length_of(data, "sizes", p)]
        columns = [tables.latency_columns(variant, p)[0] for p in labels]
        ticks = [(length_of(data, "sizes", p), p) for p in labels]
        title = "One-way latency over size, at 100 Hz"
        figure = over(data, columns, "sizes", title, "size of the message", ticks, True)
        if figure:
            yield "sizes", "sizes.png", title, figure
        return


def readers(data):
    """p50 over the number of readers."""
    for phase in data.phases("readers")[:1]:
        variants = data.variants("readers")
        if not all(v.rpartition("->")[2].isdigit() for v in variants):
            return
        columns = [tables.latency_columns(v, phase)[0] for v in variants]
        ticks = [(int(v.rpartition("->")[2]), v.rpartition("->")[2]) for v in variants]
        title = f"One-way latency over the number of readers, at {phase}"
        figure = over(data, columns, "readers", title, "readers, each a process", ticks, True)
        if figure:
            yield "readers", "readers.png", title, figure
