"""What robot-net was to reach: its state beside Redis, calls beside messages, the link beside Zenoh; a line for each.

The numbers asked for are those of the issues 7, 16 and 17, set before anything was measured.
"""

from dataclasses import dataclass

import calls
import hosts
import stores
from numbers_text import NOTHING, median_of, three
from parts import latency_table
from table import lines_of


@dataclass(frozen=True)
class Target:
    """Two main figures of tables, one of ours and one beside it. `asked`: the least (of times the
    greatest) ratio of ours to the other."""

    title: str
    ours: tuple  # (system, table)
    beside: tuple
    asked: float


HEADER = ["what was asked", "robot-net", "beside it", "ratio", "asked", "reached"]
NOTE = (
    "What was to be reached. Figures are medians of the repetitions, the ratio is the median of "
    "the repetitions’ own. Asked are at least so many times the calls or messages per second. Of p50 it is at "
    "most so many times: the watcher’s beside that of the same bytes as an urgent message, a call’s beside that "
    "of the same bytes there and back, and between two hosts robot-net’s beside Zenoh’s."
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
    return found


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
    ratio = median_of(mine[r] / theirs[r] for r in mine if theirs.get(r))
    less = target.ours[1].less_is_better
    reached = NOTHING
    if ratio is not None:
        reached = "yes" if (ratio <= target.asked if less else ratio >= target.asked) else "**no**"
    cells = [figure(data, target.ours, mine), figure(data, target.beside, theirs), three(ratio)]
    return [target.title, *cells, f"{'≤' if less else '≥'} {target.asked}", reached]


def values(data, side):
    """Repetition -> main figure."""
    system, table = side
    return table.main.values(data, table.workload, system)


def figure(data, side, found):
    """The median with its name."""
    system, table = side
    unit = table.main.header.rpartition(", ")[2]
    return f"{data.label(system)}: {three(median_of(found.values()))} {unit}" if found else NOTHING
