"""The robot of ten nodes, topic by topic: one folded table for each system."""

from numbers_text import three, whole, with_range
from table import lines_of

WORKLOAD = "sierra_nevada"
HEADER = [
    "topic",
    "received, messages",
    "late, messages",
    "too late, messages",
    "lost, messages",
    "mean latency, µs",
    "p99, µs",
    "p99.9, µs",
    "max, µs",
]


def render(data):
    """Lines of Markdown."""
    out = []
    for variant in data.variants(WORKLOAD):
        for label in data.phases(WORKLOAD):
            for system in data.rows(WORKLOAD):
                cell = data.cell(WORKLOAD, variant, system, label)
                if cell:
                    out += of_system(data, system, variant, label, list(cell.values()))
    return out


def of_system(data, system, variant, label, phases):
    """The topics of one system."""
    rows = [of_topic(topic, phases) for topic in phases[0].topics()]
    named = " / ".join(p for p in (WORKLOAD, variant, label, system, "topics") if p)
    summary = f"<details><summary>each topic with {data.label(system)}</summary>"
    return [summary, "", f"<!-- table: {named} -->", *lines_of(HEADER, rows), "", "</details>", ""]


def of_topic(topic, phases):
    """The cells of one topic."""
    count = lambda field: whole(sum(p.total(field, topic) or 0 for p in phases))
    means = [p.mean_us(topic) for p in phases]
    quantile = lambda q: with_range([p.quantile_us(q, topic) for p in phases])
    longest = [m for m in (p.max_us(topic) for p in phases) if m is not None]
    return [
        f"`{topic}`",
        count("count"),
        count("late"),
        count("too_late"),
        count("lost"),
        with_range(means),
        quantile(0.99),
        quantile(0.999),
        three(max(longest, default=None)),
    ]
