"""Targets of robot-net: its state beside Redis, calls beside messages, the link beside Zenoh, C++ beside Rust; a
line for each.

The numbers asked for are those of the issues 7, 16, 17 and 35, set before anything was measured.
"""

from dataclasses import dataclass

import calls
import hosts
import stores
from numbers_text import NOTHING, median_of, three
from parts import latency_table, name, rate_table
from table import Column, Table, lines_of


@dataclass(frozen=True)
class Target:
    """Two figures of tables, one of ours and one beside it: the tables' main ones where no column is named.
    `asked`: the least (of what is better small the greatest) ratio of ours to the other; with nothing beside it,
    of ours itself."""

    title: str
    ours: tuple  # (system, table) or (system, table, column)
    beside: tuple | None
    asked: float


HEADER = ["what was asked", "robot-net", "beside it", "ratio", "asked", "reached"]
NOTE = (
    "What was to be reached. Figures are medians of the repetitions, the ratio is the median of "
    "the repetitions’ own. Asked are at least so many times the calls or messages per second. Of p50 it is at "
    "most so many times: the watcher’s beside that of the same bytes as an urgent message, a call’s beside that "
    "of the same bytes there and back, and between two hosts robot-net’s beside Zenoh’s. An urgent event "
    "beside images stands beside the same alone, what ten subscribers put on the cable beside what one does. "
    "CPU of a link is asked for by itself, as a share of one core."
)


def all_of():
    """The targets."""
    found = []
    for clients in ("1 client", "4 clients"):
        for call, asked in (("get", 200), ("set", 100)):
            table = stores.calls_table("state", clients, call)
            found.append(against_redis(f"{call}, {clients}", table, table, asked))
    ours = stores.counter_table("state-cas", "compare and set, 4 clients", "count")
    incr = stores.counter_table("state-cas", "add, 4 clients", "count")
    found.append(against_redis("compare and set, 4 clients, beside INCR", ours, incr, 20))
    for clients in ("1 client", "4 clients"):
        table = stores.calls_table("state-durable", clients, "set")
        found.append(against_redis(f"durable set, {clients}", table, table, 1))
    for rate in ("1 kHz", "10 kHz"):
        table = latency_table("state-watch", "1->1", rate)
        title = f"watch at {rate}, beside an urgent message"
        found.append(Target(title, ("rnet-watch", table), ("rnet-adaptive", table), 1))
    at_once = calls.table("at once")
    ours, beside = ("rnet-call", at_once), ("rnet-adaptive", at_once)
    found.append(Target("call at once, beside a message there and back", ours, beside, 1.1))
    for size, asked in (("22 B", 2), ("1 KiB", 1), ("1 MiB", 0.9)):
        table = hosts.throughput_table("1->1", size)
        found.append(beside_zenoh(f"between hosts, {size} as fast as possible", table, asked))
    table = hosts.latency_table("1->1", "64 B")
    found.append(beside_zenoh("between hosts, 64 B at 1 kHz", table, 1.5))
    return found + of_the_link() + of_cpp()


def of_the_link():
    """The targets of the link itself."""
    ours, found = "rnet-adaptive", []
    for rate in ("20 Mbit/s", "1 Gbit/s"):
        p99 = lambda phase: phase.quantile_us(0.99, "event")
        loaded, alone = (Column(f"{label}: p99, µs", rate, label, p99) for label in ("loaded", "unloaded"))
        table = Table(name("hosts-urgent", rate), "hosts-urgent", [], loaded, True)
        title = f"between hosts, an urgent event at {rate}, beside images"
        found.append(Target(title, (ours, table), (ours, table, alone), 2))
    wire = lambda phase: phase.wire_per_message()
    ten, one = (
        Column(f"{v.replace('->', '→')}: {hosts.WIRE}, B", v, "1 kHz", wire) for v in ("1->10", "1->1")
    )
    table = Table(name("hosts-readers", "1 kHz"), "hosts-readers", [], ten, True)
    found.append(
        Target("between hosts, bytes on the cable for ten subscribers", (ours, table), (ours, table, one), 1.1)
    )
    table = hosts.latency_table("1->1", "1 KiB")
    for column in hosts.cpu_columns("1->1", "1 KiB"):
        if "link" in column.header:
            who = column.header.rpartition(", ")[0]
            found.append(Target(f"between hosts, 1 KiB at 1 kHz, {who}", (ours, table, column), None, 5))
    return found


def of_cpp():
    """The targets of C++: at most 1.05 times the time of Rust, so at least 1 / 1.05 of its rate."""
    found = []
    for size in ("22 B", "1 KiB", "1 MiB loaned"):
        found.append((f"{size} as fast as possible", rate_table("cpp", "throughput", size), 0.952))
    found.append(("64 B at 10 kHz", latency_table("cpp", "latency", "10 kHz"), 1.05))
    return [
        Target(f"C++ beside Rust, {title}", ("rnet-cpp", table), ("rnet-adaptive", table), asked)
        for title, table, asked in found
    ]


def beside_zenoh(title, table, asked):
    """A target between two hosts."""
    return Target(title, ("rnet-adaptive", table), ("zenoh-tcp", table), asked)


def against_redis(title, ours, beside, asked):
    """A target beside Redis's synchronous client on its Unix socket."""
    return Target(title, ("rnet-state", ours), ("redis-kv", beside), asked)


def render(data):
    """The table, or nothing where none of it was measured."""
    rows = [row for target in all_of() if (row := line(data, target))]
    return [NOTE, "", "<!-- table: targets -->", *lines_of(HEADER, rows), ""] if rows else []


def line(data, target):
    """The cells of one target; `None` where neither figure is there."""
    mine, theirs = (values(data, side) for side in (target.ours, target.beside))
    if not mine and not theirs:
        return None
    alone = target.beside is None
    ratio = None if alone else median_of(mine[r] / theirs[r] for r in mine if theirs.get(r))
    judged = median_of(mine.values()) if alone else ratio
    less = target.ours[1].less_is_better
    reached = NOTHING
    if judged is not None:
        reached = "yes" if (judged <= target.asked if less else judged >= target.asked) else "**no**"
    cells = [figure(data, target.ours, mine), figure(data, target.beside, theirs), three(ratio)]
    return [target.title, *cells, f"{'≤' if less else '≥'} {target.asked}", reached]


def values(data, side):
    """Repetition -> figure; empty if the side is missing."""
    if side is None:
        return {}
    system, table, column = shown(side)
    return column.values(data, table.workload, system)


def shown(side):
    """(system, table, column) of a side."""
    system, table, *column = side
    return system, table, column[0] if column else table.main


def figure(data, side, found):
    """The median with its name."""
    if not found:
        return NOTHING
    system, _, column = shown(side)
    unit = column.header.rpartition(", ")[2]
    return f"{data.label(system)}: {three(median_of(found.values()))} {unit}"
