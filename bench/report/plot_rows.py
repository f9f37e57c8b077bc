"""Plots with a row for each system: its figures as dots on one scale."""

import math

import matplotlib.pyplot as plt

import published
import tables
from distribution import merged
from numbers_text import median_of, three
from plot_style import OTHER, OURS, PUBLISHED, WIDTH_IN, plain_ticks, short_name


def canvas(title, rows, panels):
    """A figure of `panels` panels side by side, high enough for its rows."""
    height = 1.9 + 0.29 * max(rows, 4)
    figure, axes = plt.subplots(1, panels, figsize=(WIDTH_IN, height), squeeze=False)
    figure.suptitle(title, x=0.01, ha="left")
    return figure, list(axes[0])


def name_rows(data, axes, systems):
    """The systems' names at the left, the first on top."""
    axes.set_yticks(range(len(systems)), [short_name(data, s) for s in systems])
    for text, system in zip(axes.get_yticklabels(), systems):
        if data.is_ours(system):
            text.set(color=OURS, fontweight="bold" if data.is_default(system) else "normal")
    axes.set_ylim(len(systems) - 0.4, -0.6)
    axes.grid(axis="x")


def colour(data, system):
    """A system's colour."""
    return OURS if data.is_ours(system) else OTHER


def log_scale(axes, least, most, left, right):
    """A logarithmic scale with space for labels beside the dots."""
    axes.set_xscale("log")
    decades = max(math.log10(most / least), 0.7)
    axes.set_xlim(least / 10 ** (left * decades), most * 10 ** (right * decades))
    plain_ticks(axes.xaxis)


def one_scale(panels):
    """Gives the panels the widest of their scales, so that they can be compared."""
    limits = [axes.get_xlim() for axes in panels]
    for axes in panels:
        axes.set_xlim(min(low for low, _ in limits), max(high for _, high in limits))


def medians(data, axes, table, shown=(), from_zero=False):
    """Each system's median with its range, best on top; the median is written beside it. `shown`:
    further values that the scale must hold."""
    systems = table.measured(data)
    seen = list(shown)
    for i, system in enumerate(systems):
        values = list(table.main.values(data, table.workload, system).values())
        seen += values
        middle = median_of(values)
        default = data.is_default(system)
        axes.hlines(i, min(values), max(values), color=colour(data, system), linewidth=2)
        axes.plot(middle, i, "o", color=colour(data, system), markersize=9 if default else 6)
        axes.annotate(
            three(middle),
            (max(values), i),
            xytext=(7, 0),
            textcoords="offset points",
            va="center",
            fontsize=9,
            color=colour(data, system),
            fontweight="bold" if default else "normal",
        )
    name_rows(data, axes, systems)
    if from_zero:
        axes.set_xlim(0, max(seen, default=1) * 1.35)
    elif seen and min(seen) > 0:
        log_scale(axes, min(seen), max(seen), 0.08, 0.28)
    axes.set_xlabel(f"{table.main.header}  (● median, — range)", loc="right")
    return systems


def study1(data):
    """Delivered messages per second, with the founding study's."""
    variants = [v for v, p in data.pairs("study1") if p == "flood"]
    if not variants:
        return
    title = "22-byte messages as fast as possible: delivered at each reader"
    figure, panels = canvas(title, len(data.rows("study1")), len(variants))
    for axes, variant in zip(panels, variants):
        table = tables.rate_table("study1", variant, "flood")
        then = {s: published.study1(s, variant) for s in table.measured(data)}
        shown = [figure_then for figure_then in then.values() if figure_then]
        for i, system in enumerate(medians(data, axes, table, shown)):
            figure_then = then[system]
            if figure_then:
                axes.plot(figure_then, i, "D", color=PUBLISHED, markersize=6)
                axes.annotate(
                    f"study: {three(figure_then)}",
                    (figure_then, i),
                    xytext=(0, 5),
                    textcoords="offset points",
                    ha="center",
                    fontsize=9,
                    color=PUBLISHED,
                )
        axes.set_title(
            f"{variant.replace('->', ' writer → ')} reader{'s' if variant[-1] != '1' else ''}",
            loc="left",
        )
    one_scale(panels)
    yield "study1", "study1.png", title, figure


def percentiles(data, axes, workload, variant, phase, topic=None):
    """p50, p99 and the longest of all repetitions together, by p50."""
    found = {}
    for system in data.rows(workload):
        cell = data.cell(workload, variant, system, phase)
        times = merged(p.latency(topic) for p in cell.values())
        if times.count:
            found[system] = [times.quantile_us(0.5), times.quantile_us(0.99), times.max_us()]
    systems = sorted(found, key=lambda s: found[s][0])
    for i, system in enumerate(systems):
        p50, p99, longest = found[system]
        shade = colour(data, system)
        axes.hlines(i, p50, longest, color=shade, linewidth=1, alpha=0.5)
        axes.hlines(i, p50, p99, color=shade, linewidth=4, alpha=0.5)
        axes.plot(p50, i, "o", color=shade, markersize=9 if data.is_default(system) else 6)
        axes.plot(p99, i, "|", color=shade, markersize=11, markeredgewidth=2)
        axes.plot(longest, i, "x", color=shade, markersize=6)
        axes.annotate(
            three(p50),
            (p50, i),
            xytext=(-7, 0),
            textcoords="offset points",
            va="center",
            ha="right",
            fontsize=9,
            color=shade,
        )
    name_rows(data, axes, systems)
    if found:
        low, high = axes.dataLim.intervalx
        log_scale(axes, low, high, 0.22, 0.08)
    axes.set_xlabel("one-way latency, µs  (● p50, | p99, × longest)", loc="right")


def latency(data):
    """Percentiles at each rate, on one scale."""
    for variant in data.variants("latency")[:1]:
        phases = [p for v, p in data.pairs("latency") if v == variant]
        title = "One-way latency of 64-byte messages, 1 writer → 1 reader"
        down = (len(phases) + 1) // 2
        height = down * (1.0 + 0.27 * max(len(data.rows("latency")), 4)) + 0.8
        figure, grid = plt.subplots(
            down, min(2, len(phases)), figsize=(WIDTH_IN, height), squeeze=False
        )
        figure.suptitle(title, x=0.01, ha="left")
        panels = [axes for row in grid for axes in row]
        for axes, phase in zip(panels, phases):
            percentiles(data, axes, "latency", variant, phase)
            axes.set_title(
                f"at {phase}" + (", each after a second of silence" if phase == "1 Hz" else ""),
                loc="left",
            )
        one_scale(panels[: len(phases)])
        for axes in panels[len(phases) :]:
            axes.set_visible(False)
        yield "latency", "latency.png", title, figure


def urgent(data):
    """The event's latency without and with bulk beside it."""
    for variant in data.variants("urgent")[:1]:
        phases = [p for v, p in data.pairs("urgent") if v == variant]
        title = "An urgent event at 100 Hz, alone and beside bulk data at full speed"
        figure, panels = canvas(title, len(data.rows("urgent")), len(phases))
        for axes, phase in zip(panels, phases):
            percentiles(data, axes, "urgent", variant, phase, "event")
            axes.set_title(phase, loc="left")
        one_scale(panels)
        yield "urgent", "urgent.png", title, figure


def robot(data):
    """The ten nodes: latency, CPU, memory."""
    for variant, phase in data.pairs("sierra_nevada")[:1]:
        title = "A robot of ten nodes (sierra_nevada): latency and what it costs"
        whole = tables.sierra_nevada(data, "sierra_nevada", [variant], [phase]).shown[0][1]
        wanted = ["mean latency", "CPU", "memory"]
        columns = [next(c for c in whole.columns if c.header.startswith(w)) for w in wanted]
        figure, panels = canvas(title, len(data.rows("sierra_nevada")), len(columns))
        for axes, column in zip(panels, columns):
            table = tables.Table("", "sierra_nevada", [column], column, True)
            medians(data, axes, table, from_zero=column is not columns[0])
            axes.set_xlabel(column.header, loc="right")
        yield "sierra_nevada", "sierra_nevada.png", title, figure


def python(data):
    """Python: throughput and latency."""
    pairs = data.pairs("python")
    flood = next(((v, p) for v, p in pairs if p == "flood"), None)
    paced = next(((v, p) for v, p in pairs if p != "flood"), None)
    if not flood or not paced:
        return
    title = "From Python to Python, 1 writer → 1 reader"
    figure, (left, right) = canvas(title, len(data.rows("python")), 2)
    medians(data, left, tables.rate_table("python", *flood), from_zero=True)
    left.set_title("22-byte messages as fast as possible", loc="left")
    percentiles(data, right, "python", *paced)
    right.set_title(f"64-byte messages at {paced[1]}", loc="left")
    yield "python", "python.png", title, figure
