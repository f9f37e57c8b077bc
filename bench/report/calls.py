"""Request and reply: how long a call takes."""

from parts import Tables, cost_columns, heading, name
from round_trips import quantile_us
from table import Column, Table

NOTE = (
    "A round trip ends when the caller holds the reply; that of *messages there and back* when the message "
    "is received."
)


def table(variant):
    """Calls of one variant."""
    phase = "round trip"
    part = lambda text, q: Column(
        f"{text}, µs", variant, phase, lambda p: quantile_us(p, q)
    )
    columns = [part("p50", 0.5), part("p99", 0.99), part("p99.9", 0.999)]
    longest = lambda p: quantile_us(p, 1)
    columns.append(Column("max, µs", variant, phase, longest, "max"))
    lost = lambda p: p.round_trips_lost()
    columns.append(Column("lost, round trips", variant, phase, lost, "sum"))
    columns += cost_columns(variant, phase, "round trip")
    return Table(name("call", variant), "call", columns, columns[0], True, note=NOTE)


def tables_of(_data, _workload, variants, _phases):
    """Round trips of calls."""
    return Tables([(heading(variant), table(variant)) for variant in variants])
