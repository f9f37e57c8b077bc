"""Computes the lines of the table of targets again, with none of the report's code."""

from statistics import median

from cells import numbers, same

# Targets of issue 7 for the state: beside Redis on its Unix socket, and of the watcher beside the urgent
# message. Title -> (table, system), the same of its reference, figure, least ratio.
ASKED = {
    f"{call}, {n}": (
        (f"state / {n} / {call}", "rnet-state"),
        (f"state / {n} / {call}", "redis-kv"),
        f"{call}s, k/s",
        least,
    )
    for call, least in (("get", 200), ("set", 100))
    for n in ("1 client", "4 clients")
}
ASKED["compare and set, 4 clients, beside INCR"] = (
    ("state-cas / compare and set, 4 clients / count", "rnet-state"),
    ("state-cas / add, 4 clients / count", "redis-kv"),
    "additions, k/s",
    20,
)
for n in ("1 client", "4 clients"):
    where = f"state-durable / {n} / set"
    both = (where, "rnet-state"), (where, "redis-kv")
    ASKED[f"durable set, {n}"] = (*both, "sets, k/s", 1)
for hz in ("1 kHz", "10 kHz"):
    where = f"state-watch / 1->1 / {hz}"
    both = (where, "rnet-watch"), (where, "rnet-adaptive")
    ASKED[f"watch at {hz}, beside an urgent message"] = (*both, "p50, µs", 1)
# Target of issue 17 for a call: 2.2 times a message one way, so 1.1 times one there and back.
where = "call / at once"
ASKED["call at once, beside a message there and back"] = (
    (where, "rnet-call"),
    (where, "rnet-adaptive"),
    "p50, µs",
    1.1,
)
# Targets of issue 16 for the link between hosts, beside plain Zenoh.
for size, least in (("22 B", 2), ("1 KiB", 1), ("1 MiB", 0.9)):
    where = f"hosts-throughput / 1->1 / {size}"
    both = (where, "rnet-adaptive"), (where, "zenoh-tcp")
    ASKED[f"between hosts, {size} as fast as possible"] = (
        *both,
        "delivered at each reader, k msg/s",
        least,
    )
where = "hosts-latency / 1->1 / 64 B"
both = (where, "rnet-adaptive"), (where, "zenoh-tcp")
ASKED["between hosts, 64 B at 1 kHz"] = (*both, "p50, µs", 1.5)
# And of the link itself: an urgent event beside images beside the same alone, and ten subscribers beside one.
OURS = "rnet-adaptive"
for rate in ("20 Mbit/s", "1 Gbit/s"):
    side = (f"hosts-urgent / {rate}", OURS)
    measures = ("loaded: p99, µs", "unloaded: p99, µs")
    ASKED[f"between hosts, an urgent event at {rate}, beside images"] = (side, side, measures, 2)
side = ("hosts-readers / 1 kHz", OURS)
measures = tuple(f"1→{n}: bytes on the cable per message sent, B" for n in (10, 1))
ASKED["between hosts, bytes on the cable for ten subscribers"] = (side, side, measures, 1.1)
for whose in ("publishers", "subscribers"):
    said = f"CPU of the {whose}’ link"
    ASKED[f"between hosts, 1 KiB at 1 kHz, {said}"] = (
        ("hosts-latency / 1->1 / 1 KiB", OURS),
        None,
        f"{said}, % of a core",
        5,
    )

# Targets of issue 35 for C++: 1.05 times the time of Rust.
for title, phase, measure, asked in (
    ("22 B as fast as possible", "throughput / 22 B", "delivered at each reader, k msg/s", 0.952),
    ("1 KiB as fast as possible", "throughput / 1 KiB", "delivered at each reader, k msg/s", 0.952),
    (
        "1 MiB loaned as fast as possible",
        "throughput / 1 MiB loaned",
        "delivered at each reader, k msg/s",
        0.952,
    ),
    ("64 B at 10 kHz", "latency / 10 kHz", "p50, µs", 1.05),
):
    both = (f"cpp / {phase}", "rnet-cpp"), (f"cpp / {phase}", OURS)
    ASKED[f"C++ beside Rust, {title}"] = (*both, measure, asked)


def sides_of(title):
    """(table, system, measure) of both figures, the second `None` if missing; and the target."""
    ours, beside, measure, asked = ASKED[title]
    mine, theirs = measure if isinstance(measure, tuple) else (measure, measure)
    return (*ours, mine), (*beside, theirs) if beside else None, asked


def targets_differences(raw, table, _header, rows, _found, figures):
    """Recomputes each line: both figures, their ratio, the target, and whether it was reached."""
    wrong, titles = [], [cells[0] for cells in rows]
    for title, *cells in rows:
        ours, beside, asked = sides_of(title)
        sides, measure = [ours, beside], ours[2]
        values = [figures(s[0], s[2], s[1])[0] if s else {} for s in sides]
        for cell, found, side in zip(cells, values, sides):
            system = side[1] if side else None
            label, _, shown = cell.rpartition(": ")
            right = label == raw["systems"].get(system, {}).get("label") if found else cell == "–"
            middle = [median(found.values())] if found else []
            if not right or not same(numbers(shown.split(" ")[0]), middle):
                wrong.append(f"{table}, {title}: {cell}, the raw data gives {middle}")
        ratios = [values[0][r] / values[1][r] for r in values[0] if values[1].get(r)]
        want = [median(ratios)] if ratios else []
        judged = want if beside else [median(values[0].values())]
        sign, least = cells[3].split()
        at_most = measure.endswith(("µs", ", B", "of a core"))
        held = judged and (judged[0] <= asked if at_most else judged[0] >= asked)
        said = ("yes" if held else "**no**") if judged else "–"
        if not same(numbers(cells[2]), want) or cells[4] != said:
            wrong.append(f"{table}, {title}: {cells[2]} {cells[4]}, the raw data gives {want}")
        if (sign, float(least)) != ("≤" if at_most else "≥", asked):
            wrong.append(f"{table}, {title}: {cells[3]} is not what was asked")
    measured = lambda side: side and figures(side[0], side[2], side[1])[0]
    wanted = [t for t in ASKED if any(map(measured, sides_of(t)[:2]))]
    missing = [f"{table}: {t} is missing" for t in wanted if t not in titles]
    return wrong + missing, 3 * len(rows)
