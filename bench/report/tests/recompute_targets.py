"""Computes the lines of the table of targets again, with none of the report's code."""

from statistics import median

from cells import numbers, same

# What issue 7 asks of the state: beside Redis on its Unix socket, and of the watcher beside the urgent
# message. Title -> (table, system), the same of what it is compared with, figure, least ratio.
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
# What issue 17 asks of a call: 2.2 times a message one way, so 1.1 times one there and back.
where = "call / at once"
ASKED["call at once, beside a message there and back"] = (
    (where, "rnet-call"),
    (where, "rnet-adaptive"),
    "p50, µs",
    1.1,
)
# What issue 16 asks of the link between hosts, beside plain Zenoh.
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


def targets_differences(raw, table, _header, rows, _found, figures):
    """Each line again: both figures, their ratio, what was asked, and whether it was reached."""
    wrong, titles = [], [cells[0] for cells in rows]
    for title, *cells in rows:
        (ours, mine), (beside, theirs), measure, asked = ASKED[title]
        sides = [(ours, mine), (beside, theirs)]
        values = [figures(where, measure, system)[0] for where, system in sides]
        for cell, found, (_, system) in zip(cells, values, sides):
            label, _, shown = cell.rpartition(": ")
            right = label == raw["systems"].get(system, {}).get("label") if found else cell == "–"
            middle = [median(found.values())] if found else []
            if not right or not same(numbers(shown.split(" ")[0]), middle):
                wrong.append(f"{table}, {title}: {cell}, the raw data gives {middle}")
        ratios = [values[0][r] / values[1][r] for r in values[0] if values[1].get(r)]
        want = [median(ratios)] if ratios else []
        sign, least = cells[3].split()
        held = want and (want[0] <= asked if measure.endswith("µs") else want[0] >= asked)
        said = ("yes" if held else "**no**") if want else "–"
        at_most = measure.endswith("µs")
        if not same(numbers(cells[2]), want) or cells[4] != said:
            wrong.append(f"{table}, {title}: {cells[2]} {cells[4]}, the raw data gives {want}")
        if (sign, float(least)) != ("≤" if at_most else "≥", asked):
            wrong.append(f"{table}, {title}: {cells[3]} is not what was asked")
    measured = lambda side, measure: figures(side[0], measure, side[1])[0]
    wanted = [t for t, (a, b, m, _) in ASKED.items() if measured(a, m) or measured(b, m)]
    missing = [f"{table}: {t} is missing" for t in wanted if t not in titles]
    return wrong + missing, 3 * len(rows)
