"""Parts of the tables of all workloads: names, headings, and shared columns."""

from dataclasses import dataclass, field

from table import Column, Table


@dataclass
class Tables:
    """The tables of a workload: (heading, table), in the open and behind a fold."""

    shown: list = field(default_factory=list)
    folded: list = field(default_factory=list)


def name(*parts):
    """A table's name in the comment before it."""
    return " / ".join(p for p in parts if p)


def heading(*parts):
    """The text above a table."""
    return ", ".join(p.replace("->", " → ") for p in parts if p)


def latency_columns(variant, phase, topic=None, prefix=""):
    """One-way times: median, 99th and 99.9th percentile, and the longest of all repetitions."""
    return [
        Column(f"{prefix}p50, µs", variant, phase, lambda p: p.quantile_us(0.5, topic)),
        Column(f"{prefix}p99, µs", variant, phase, lambda p: p.quantile_us(0.99, topic)),
        Column(f"{prefix}p99.9, µs", variant, phase, lambda p: p.quantile_us(0.999, topic)),
        Column(f"{prefix}max, µs", variant, phase, lambda p: p.max_us(topic), "max"),
    ]


def latency_cells(title, variant, phase):
    """The same beside those of other phases or variants: without their ranges."""
    quantiles = [
        Column(
            f"{title} {text}, µs", variant, phase, lambda p, q=q: p.quantile_us(q), "median"
        )
        for q, text in ((0.5, "p50"), (0.99, "p99"), (0.999, "p99.9"))
    ]
    return [*quantiles, Column(f"{title} max, µs", variant, phase, lambda p: p.max_us(), "max")]


def lost_column(variant, phase):
    """Messages that were sent and did not arrive, in all repetitions."""
    return Column("lost, messages", variant, phase, lambda p: p.total("lost"), "sum")


def behind_column(variant, phase, prefix=""):
    """How late a paced sender was: time that is in no latency."""
    header = f"{prefix}sender behind, max, µs"
    return Column(header, variant, phase, lambda p: p.lag_max_us(), "max")


def cost_columns(variant, phase, per="message delivered"):
    """Cost: CPU and memory of all processes."""
    return [
        Column(f"CPU per {per}, µs", variant, phase, lambda p: p.cpu_per_operation_us(), "median"),
        Column("memory of all processes, MiB", variant, phase, lambda p: p.rss_mib(), "median"),
    ]


def rate_table(workload, variant, phase, figure=None):
    """Messages as fast as possible."""
    main = Column("delivered at each reader, k msg/s", variant, phase, lambda p: div(p.rate(), 1e3))
    columns = [
        main,
        *latency_columns(variant, phase),
        lost_column(variant, phase),
        *cost_columns(variant, phase),
    ]
    return Table(name(workload, variant, phase), workload, columns, main, False, figure)


def latency_table(workload, variant, phase):
    """Messages at a given rate."""
    columns = latency_columns(variant, phase)
    columns += [
        Column("delivered at each reader, msg/s", variant, phase, lambda p: p.rate(), "median"),
        lost_column(variant, phase),
        *cost_columns(variant, phase),
        Column("CPU, s/s", variant, phase, lambda p: p.cpu_per_s(), "median"),
        behind_column(variant, phase),
    ]
    return Table(name(workload, variant, phase), workload, columns, columns[0], True)


def div(value, by):
    """`value / by`, or `None`."""
    return None if value is None else value / by
