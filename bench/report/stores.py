"""The tables of the key-value stores."""

import published
from parts import Tables, cost_columns, div, heading, name
from table import Column, Table


def study1_kv(data, workload, variants, phases):
    """One client sets, the readers get."""
    tables = Tables()
    for variant in variants:
        for phase in phases:
            sets = Column("sets, k/s", variant, phase, lambda p: div(p.calls_per_s("set"), 1e3))
            gets = lambda p: div(p.calls_per_s("get", mean=True), 1e3)
            distinct = lambda p: div(p.distinct_per_s(), 1e3)
            age = lambda q: lambda p: p.call_times("get", "age").quantile_us(q)
            columns = [
                sets,
                Column("gets at each reader, k/s", variant, phase, gets),
                Column("distinct values seen by each reader, k/s", variant, phase, distinct),
                Column("age p50, µs", variant, phase, age(0.5)),
                Column("age p99, µs", variant, phase, age(0.99)),
                Column("age p99.9, µs", variant, phase, age(0.999)),
                Column(
                    "age max, µs",
                    variant,
                    phase,
                    lambda p: p.call_times("get", "age").max_us(),
                    "max",
                ),
                *cost_columns(variant, phase, "call"),
            ]
            figure = lambda system, v=variant: published.study1_sets(system, v)
            table = Table(name(workload, variant, phase), workload, columns, sets, False, figure)
            tables.shown.append((heading(variant, phase), table))
    return tables


def calls(data, workload, variants, phases):
    """Set or get, each phase a table."""
    tables = Tables()
    for variant in variants:
        for phase in phases:
            table = calls_table(workload, variant, phase)
            tables.shown.append((heading(variant, phase), table))
    return tables


def calls_table(workload, variant, phase):
    """One kind of call: how many, how long."""
    call = phase if phase in ("set", "get") else "set"
    main = Column(f"{call}s, k/s", variant, phase, lambda p: div(p.calls_per_s(call), 1e3))
    columns = [main, *time_columns(variant, phase, call), *cost_columns(variant, phase, "call")]
    return Table(name(workload, variant, phase), workload, columns, main, False)


def time_columns(variant, phase, call=None):
    """How long the timed calls took."""
    quantile = lambda q: lambda p: p.call_times(call).quantile_us(q)
    longest = lambda p: p.call_times(call).max_us()
    return [
        Column("p50, µs", variant, phase, quantile(0.5)),
        Column("p99, µs", variant, phase, quantile(0.99)),
        Column("p99.9, µs", variant, phase, quantile(0.999)),
        Column("max, µs", variant, phase, longest, "max"),
    ]


def sizes(_data, workload, variants, phases):
    """Calls per second and their median time, over size: a table of sets and one of gets."""
    tables = Tables()
    for variant in variants:
        for call in ("set", "get"):
            columns = []
            for phase in [p for p in phases if p.startswith(call)] or phases[:1]:
                rate = lambda p, c=call: div(p.calls_per_s(c), 1e3)
                p50 = lambda p, c=call: p.call_times(c).quantile_us(0.5)
                columns.append(Column(f"{phase}: calls, k/s", variant, phase, rate))
                columns.append(Column(f"{phase}: p50, µs", variant, phase, p50, "median"))
            table = Table(name(workload, variant, call), workload, columns, columns[0], False)
            tables.shown.append((heading(variant, call), table))
    return tables


def counters(_data, workload, variants, phases):
    """Additions to one number, by one call or by compare-and-set."""
    tables = Tables()
    phase = "count" if "count" in phases else phases[0]
    for variant in variants:
        tables.shown.append((heading(variant), counter_table(workload, variant, phase)))
    return tables


def counter_table(workload, variant, phase):
    """One way to add: how many, how long, how often in vain."""
    main = Column("additions, k/s", variant, phase, lambda p: div(p.calls_per_s(), 1e3))
    columns = [
        main,
        *time_columns(variant, phase),
        Column("tries per addition", variant, phase, lambda p: p.tries_per_call()),
        *cost_columns(variant, phase, "addition"),
    ]
    return Table(name(workload, variant, phase), workload, columns, main, False)
