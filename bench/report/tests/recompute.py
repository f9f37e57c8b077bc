"""Computes the figures of a REPORT.md again, from the raw data, with none of the report's code.

`differences` returns a line for each figure that does not follow from the raw data, and how many it
has compared.
"""

import math
import re
from statistics import mean, median

from cells import numbers, same
from recompute_calls import call_figure
from recompute_hosts import WIRE, cable_figure
from recompute_published import PUBLISHED, STUDY3
from recompute_targets import targets_differences

BANDS_KIB = {
    "< 64 KiB": (0, 64),
    "64–512 KiB": (64, 512),
    "0.5–1 MiB": (512, 1024),
    "≥ 1 MiB": (1024, 1e9),
}
BULK_LEN = {"urgent": 65536, "hosts-urgent": 921600}
# Of what the raw data counts in KiB, what a column adds up.
MEMORY = {
    "processes": ["processes_kib"],
    "shared files": ["shared_kib"],
    "in all": ["processes_kib", "shared_kib"],
    "in all per publisher": ["processes_kib", "shared_kib"],
}
# The reference of the others: robot-net with its default wait, in each kind of work.
DEFAULT = {
    "python": "py-rnet",
    "study1-kv": "rnet-state",
    "state": "rnet-state",
    "state-sizes": "rnet-state",
    "state-cas": "rnet-state",
    "state-durable": "rnet-state",
    "state-watch": "rnet-watch",
    "call": "rnet-call",
}
OURS = {
    "rnet-spin",
    "rnet-adaptive",
    "rnet-block",
    "rnet-state",
    "rnet-cell",
    "rnet-watch",
    "rnet-call",
    "rnet-cpp",
    "py-rnet",
}
SOCKETS = {"tcp", "unix"}
# A reader that spins is compared with ours that does.
SPINNING = {"iceoryx2-poll": "rnet-spin"}

def tables_of(markdown):
    """name -> (text before the table, header, rows, whether it is folded)."""
    found, lines, folded = {}, markdown.splitlines(), False
    for start, line in enumerate(lines):
        folded = (folded or "<details>" in line) and "</details>" not in line
        named = re.fullmatch(r"<!-- table: (.*) -->", line)
        if not named:
            continue
        at = next(i for i in range(start, len(lines)) if lines[i].startswith("|"))
        body = []
        while at < len(lines) and lines[at].startswith("|"):
            cells = re.split(r"(?<!\\)\|", lines[at])[1:-1]
            body.append([c.strip().replace("\\|", "|") for c in cells])
            at += 1
        if named[1] in found:
            raise AssertionError(f"two tables are called {named[1]}")
        note = " ".join(line for line in lines[start + 1 : start + 3] if line[:1] != "|")
        found[named[1]] = (note, body[0], body[2:], folded)
    return found


# Figures of one phase of one run, straight from the raw data.


def received(phase, topics=None):
    entries = [e for p in phase["processes"] for e in (p.get("result") or {}).get("received", [])]
    return [e for e in entries if topics is None or topics(e["topic"])]


def clients(phase, *calls):
    found = [(p.get("result") or {}).get("calls") for p in phase["processes"]]
    return [c for c in found if c and (not calls or c["call"] in calls)]


def trips(phase):
    return [t for p in phase["processes"] for t in (p.get("result") or {}).get("round_trips", [])]


def percentile(distributions, q):
    """By writing every time out in order and taking the one at the rank."""
    pairs = sorted(
        (v, n) for d in distributions for v, n in zip(d["buckets"][0::2], d["buckets"][1::2])
    )
    count = sum(n for _, n in pairs)
    if not count:
        return None
    rank, seen = max(1, math.ceil(count * q)), 0
    for value, n in pairs:
        seen += n
        if seen >= rank:
            return min(value, max(d["max"] for d in distributions if d["count"])) / 1000
    raise AssertionError("a rank beyond the count")


def timing(distributions, measure):
    distributions = [d for d in distributions if d["count"]]
    if not distributions:
        return None
    if measure == "max":
        return max(d["max"] for d in distributions) / 1000
    if measure == "mean":
        return sum(d["sum"] for d in distributions) / sum(d["count"] for d in distributions) / 1000
    return percentile(distributions, round(float(measure[1:]) / 100, 5))


def rate(phase, topics=None):
    entries = received(phase, topics)
    each = [
        (e["count"] - 1) / (e["span_ns"] / 1e9) if e["count"] > 1 and e["span_ns"] else None
        for e in entries
    ]
    return mean(each) if each and None not in each else None


def trips_lost(phase):
    return sum((p.get("result") or {}).get("round_trips_lost", 0) for p in phase["processes"])


def per_second(phase, call, field, combine):
    found = [c[field] / (c["elapsed_ns"] / 1e9) for c in clients(phase, call) if c["elapsed_ns"]]
    return combine(found) if found else None


def cpu_us(phase):
    done = sum(e["count"] for e in received(phase)) + len(trips(phase))
    done += sum(c["count"] for c in clients(phase))
    return sum(p["cpu_ns"] for p in phase["processes"]) / 1000 / done if done else None


def scaled(value, by):
    return None if value is None else value / by


def figure(workload, label, header, phase):
    """(value, how the repetitions are combined) of a column."""
    event = (lambda t: t == "event") if workload in BULK_LEN else None
    counts = {
        "received": "count",
        "lost": "lost",
        "corrupt": "corrupt",
        "late": "late",
        "too late": "too_late",
    }
    name, _, unit = header.rpartition(", ")
    if name == "lost" and unit == "round trips":
        return (trips_lost(phase) if trips(phase) or trips_lost(phase) else None), "sum"
    if name == "target":
        return scaled(phase["rate_hz"], 1000), "range"
    if name in counts:
        entries = received(phase)
        return (sum(e[counts[name]] for e in entries) if entries else None), "sum"
    if name == "events lost":
        entries = received(phase, event)
        return (sum(e["lost"] for e in entries) if entries else None), "sum"
    if workload == "call" and re.fullmatch(r"p\d+(\.\d+)?|max", name):
        return call_figure(name, [ns for _, ns in trips(phase)]), "max" if name == "max" else "range"
    if re.fullmatch(r"p\d+(\.\d+)?|max", name):
        times = [e["latency"] for e in received(phase, event)]
        times += [c["latency"] for c in clients(phase)] if workload != "study1-kv" else []
        return timing(times, name), "max" if name == "max" else "range"
    if name.startswith("age "):
        times = [c["age"] for c in clients(phase, "get")]
        return timing(times, name[4:]), "max" if name == "age max" else "range"
    if name == "mean latency":
        return timing([e["latency"] for e in received(phase)], "mean"), "range"
    if name == "delivered at each reader":
        if unit == "GB/s":
            return scaled(rate(phase), 1e9 / phase["len"]), "range"
        if unit == "MB/s":
            return scaled(rate(phase), 1e6 / phase["len"]), "range"
        return scaled(rate(phase), 1000 if unit == "k msg/s" else 1), "range"
    if name == "bulk delivered":
        return scaled(rate(phase, lambda t: t != "event"), 1e6 / BULK_LEN[workload]), "range"
    if name in ("sets", "gets"):
        return scaled(per_second(phase, name[:3], "count", sum), 1000), "range"
    if name in ("additions", "calls"):
        every = [c["count"] / c["elapsed_ns"] for c in clients(phase) if c["elapsed_ns"]]
        return (sum(every) * 1e6 if every else None), "range"
    if header == "tries per addition":
        tried = sum(c.get("tries", 0) for c in clients(phase))
        return (tried / sum(c["count"] for c in clients(phase)) if tried else None), "range"
    if name == "gets at each reader":
        return scaled(per_second(phase, "get", "count", mean), 1000), "range"
    if name == "distinct values seen by each reader":
        return scaled(per_second(phase, "get", "distinct", mean), 1000), "range"
    if name in BANDS_KIB:
        low, high = BANDS_KIB[name]
        times = [ns for size, ns in trips(phase) if low * 1024 <= size < high * 1024]
        return (median(times) / 1000 if times else None), "range"
    if name == "max of all sizes":
        return (max(ns for _, ns in trips(phase)) / 1e6 if trips(phase) else None), "max"
    if unit == "% of a core" or name == WIRE:
        return cable_figure(name, phase), "range"
    if name.startswith("CPU per "):
        return cpu_us(phase), "range"
    if unit == "s/s":
        return sum(p["cpu_ns"] for p in phase["processes"]) / 1e9 / phase["elapsed_s"], "range"
    if name in MEMORY:
        memory, publishers = phase.get("memory"), 1
        if name == "in all per publisher":
            results = [p.get("result") or {} for p in phase["processes"]]
            publishers = sum(len(r.get("sent", [])) for r in results)
        by = publishers if unit == "KiB" else 1024
        return (sum(memory[k] for k in MEMORY[name]) / by if memory else None), "range"
    if unit == "MiB":
        return sum(p["rss_kib"] for p in phase["processes"]) / 1024, "range"
    if name == "sender behind, max":
        sent = [
            s["lag_max_ns"]
            for p in phase["processes"]
            for s in (p.get("result") or {}).get("sent", [])
        ]
        return (max(sent) / 1000 if sent else None), "max"
    raise AssertionError(f"a column that the test does not know: {header!r}")


def place(raw, table, header):
    """(variant, phase, rest of the header) of a column."""
    workload, *parts = table.split(" / ")
    runs = [r for r in raw["runs"] if r["workload"] == workload]
    variants = {r["variant"] for r in runs}
    phases = {p["label"] for r in runs for p in r["phases"]}
    variant = next((p for p in parts if p in variants), None)
    phase = next(
        (p for p in reversed(parts) if p in phases and (p != variant or len(parts) > 1)), None
    )
    if variant is None or phase is None:
        for known in sorted(variants | phases, key=len, reverse=True):
            shown = known.replace("->", "→")
            if re.match(re.escape(shown) + r":? ", header):
                header = header[len(shown) :].lstrip(": ")
                if variant is None:
                    variant = known
                else:
                    phase = known
                break
    if phase is None and len(phases) == 1:
        phase = next(iter(phases))
    return variant, phase, header


def column(raw, table, header, system):
    """(repetition -> value, how) of a column."""
    workload = table.split(" / ")[0]
    multiple = re.fullmatch(r"(.*): (\S+) as a multiple of (\S+), times", header)
    if multiple:
        mine, _ = column(raw, table, f"{multiple[2]}: {multiple[1]}, B", system)
        one, _ = column(raw, table, f"{multiple[3]}: {multiple[1]}, B", system)
        return {r: mine[r] / one[r] for r in mine if r in one}, "range"
    variant, label, rest = place(raw, table, header)
    values, how = {}, "range"
    for run in raw["runs"]:
        if (run["workload"], run["variant"], run["system"]) != (workload, variant, system):
            continue
        for phase in run["phases"]:
            if phase["label"] == label:
                value, how = figure(workload, label, rest, phase)
                if value is not None:
                    values[run["repetition"]] = value
    return values, how


def expected(values, how, shown):
    """The expected cell; a column may omit the range."""
    if not values:
        return []
    if how == "sum":
        return [sum(values)]
    if how == "max":
        return [max(values)]
    if len(shown) == 1 or len(values) == 1:
        return [median(values)]
    return [median(values), min(values), max(values)]


def differences(raw, markdown, only=None):
    """(differences, number of compared figures); `only`: the workload to check."""
    wrong, compared, known = [], 0, {}

    def figures(table, title, system):
        which = (table, title, system)
        if which not in known:
            known[which] = column(raw, table, title, system)
        return known[which]

    ids = {about["label"]: system for system, about in raw["systems"].items()}
    if len(ids) != len(raw["systems"]):
        raise AssertionError("two systems have one label")
    found = tables_of(markdown)
    for table, (note, header, rows, _folded) in found.items():
        if only and table.split(" / ")[0] != only:
            continue
        if table in ("study3", "findings", "targets") or table.endswith("/ topics"):
            check = SPECIAL[table.rpartition("/ ")[2]]
            more, n = check(raw, table, header, rows, found, figures)
            wrong, compared = wrong + more, compared + n
            continue
        main = re.search(r"Sorted by (.*?)\. robot-net \(default\) is “(.*?)”", note)
        workload = table.split(" / ")[0]
        default = DEFAULT.get(workload, "rnet-adaptive")
        if main and ids[main[2]] != default:
            wrong.append(f"{table}: {main[2]} is not the default")
        wrong += remark_differences(raw, table, header, rows, ids, figures)
        if table.endswith("/ limited"):
            flood = [cells[0] for cells in found[table.replace("limited", "flood")][2]]
            here = [cells[0] for cells in rows if numbers(cells[2])]
            if sorted(here, key=flood.index) != here or main:
                wrong.append(f"{table}: not in the order of the flood")
        last = None
        for cells in rows:
            system = ids[cells[0].replace("*", "")]
            for title, cell in zip(header[1:], cells[1:]):
                if title == "remarks":
                    continue
                shown = numbers(cell)
                if title.startswith("published"):
                    then = PUBLISHED.get((*table.split(" / ")[:2], system))
                    want = [then] if then else []
                elif title == "robot-net (default) : this":
                    ours, _ = figures(table, main[1], SPINNING.get(system, default))
                    theirs, _ = figures(table, main[1], system)
                    both = [ours[r] / theirs[r] for r in ours if theirs.get(r)]
                    want = [median(both)] if both else []
                else:
                    values, how = figures(table, title, system)
                    want = expected(list(values.values()), how, shown)
                compared += len(want)
                if not same(shown, want):
                    wrong.append(
                        f"{table}, {cells[0]}, {title}: shows {cell}, the raw data gives {want}"
                    )
            if main:
                values = list(figures(table, main[1], system)[0].values())
                if values:
                    now = median(values)
                    rising = main[1].endswith(("µs", "ms", "MiB", "times"))
                    if last is not None and (now < last if rising else now > last):
                        wrong.append(f"{table}, {cells[0]}: not in order")
                    last = now
    return wrong, compared


def remark_differences(raw, table, header, rows, ids, figures):
    """Whether the remarks name systems that lose by design, and limited senders that fell short."""
    wrong = []
    for cells in rows:
        label = cells[0].replace("*", "")
        said = cells[-1] if header[-1] == "remarks" else ""
        if ("loses by design" in said) != bool(raw["systems"][ids[label]].get("may_lose")):
            wrong.append(f"{table}, {label}: wrong about loss by design: {said}")
        short = None
        if table.endswith("/ limited"):
            target, _ = figures(table, "target, k msg/s", ids[label])
            reached, _ = figures(table, "delivered at each reader, k msg/s", ids[label])
            below = sum(reached[r] / target[r] < 0.97 for r in reached)
            short = f"below 97 % of its target in {below} of {len(reached)} rep" if below else None
        if ("97 %" in said) != bool(short) or (short and short not in said):
            wrong.append(f"{table}, {label}: wrong about its target: {said}, {short}")
    return wrong


def topic_differences(raw, table, header, rows, _found, _figures):
    workload, variant, label, system, _ = table.split(" / ")
    phases = [
        p
        for r in raw["runs"]
        if (r["workload"], r["variant"], r["system"]) == (workload, variant, system)
        for p in r["phases"]
        if p["label"] == label
    ]
    wrong, compared = [], 0
    for cells in rows:
        topic = cells[0].strip("`")
        only = [
            {
                **p,
                "processes": [
                    {
                        **q,
                        "result": {
                            "received": [
                                e
                                for e in (q.get("result") or {}).get("received", [])
                                if e["topic"] == topic
                            ]
                        },
                    }
                    for q in p["processes"]
                ],
            }
            for p in phases
        ]
        for title, cell in zip(header[1:], cells[1:]):
            picked = [figure(workload, label, title, p) for p in only]
            values = [v for v, _ in picked if v is not None]
            want = expected(values, picked[0][1], numbers(cell))
            compared += len(want)
            if not same(numbers(cell), want):
                wrong.append(f"{table}, {topic}, {title}: shows {cell}, the raw data gives {want}")
    return wrong, compared


def study3_differences(raw, table, _header, rows, _found, _figures):
    wrong, compared = [], 0
    elements = raw["study3"]["messages_per_iteration"]
    functions = {f["function"]: f for f in raw["study3"]["functions"]}
    whole = until_delivered(raw)
    for name, *cells, _remarks in rows:
        f = functions.pop(name.replace("*", ""))
        want = []
        for group in ("pub_sub", "delivered"):
            time = (f[group] or {}).get("time_ns")
            want.append([time[k] / 1e3 for k in ("estimate", "low", "high")] if time else [])
            want.append([elements * 1e3 / time["estimate"]] if time else [])
        then = STUDY3.get(f["function"])
        want.insert(2, [then] if then else [])
        both = "rnet" in whole and f["function"] in whole
        want.insert(4, [whole["rnet"] / whole[f["function"]]] if both else [])
        counted = f["pub_sub"]
        want += [[counted[k]] if counted else [] for k in ("published", "delivered")]
        for cell, values in zip(cells, want, strict=True):
            compared += len(values)
            if not same(numbers(cell), values):
                wrong.append(f"{table}, {name}: shows {cell}, the raw data gives {values}")
    return wrong + [f"{table}: {name} is missing" for name in functions], compared


def until_delivered(raw):
    """function -> µs until all messages of an iteration were delivered, where all were."""
    return {
        f["function"]: f["delivered"]["time_ns"]["estimate"] / 1000
        for f in (raw.get("study3") or {}).get("functions", [])
        if f["delivered"] and f["delivered"]["delivered"] >= f["delivered"]["published"]
    }


def falls(measure):
    """Whether less of it is better."""
    return re.search(r", (µs|ms|MiB|times)( \[95 %\])?$", measure) is not None


def stand(raw, table, measure, figures):
    """(label -> figure of the rivals, of ours, of the floor, the ratio) of a table's main figure."""
    if table == "study3":
        times = until_delivered(raw)
        rivals = {f: t for f, t in times.items() if not f.startswith("rnet")}
        ours = {"rnet": times["rnet"]} if "rnet" in times else {}
        return rivals, ours, {}, lambda best: times["rnet"] / times[best]
    workload = table.split(" / ")[0]
    members = raw["workloads"][workload]["systems"]
    values = {s: figures(table, measure, s)[0] for s in members}
    values = {s: v for s, v in values.items() if v}
    label = lambda s: raw["systems"][s]["label"]
    named = lambda keep: {label(s): median(v.values()) for s, v in values.items() if keep(s)}
    default = DEFAULT.get(workload, "rnet-adaptive")
    rivals = named(lambda s: s not in OURS | SOCKETS | set(SPINNING))

    def ratio(best):
        theirs = next(v for s, v in values.items() if label(s) == best)
        both = set(values[default]) & set(theirs)
        return median(values[default][r] / theirs[r] for r in both)

    return rivals, named(lambda s: s == default), named(lambda s: s in SOCKETS), ratio


def findings_differences(raw, table, _header, rows, found, figures):
    """Each line again: the default, the best library, the floor, the ratio and the place."""
    wrong, compared, worst = [], 0, None
    seen = set()
    for title, *cells in rows:
        spoken = {n.replace("->", " → ").replace(" / ", ", "): n for n in found}
        name, measure = next(
            (spoken[s], title[len(s) + 2 :])
            for s in sorted(spoken, key=len, reverse=True)
            if title.startswith(s + ": ")
        )
        seen.add(name.split(" / ")[0])
        rivals, ours, floor, ratio = stand(raw, name, measure, figures)
        best = min if falls(measure) else max
        first = lambda of: [(k, of[k]) for k in [best(of, key=of.get)]] if of else []
        want = [first(ours), first(rivals), first(floor)]
        for cell, pair in zip((cells[0], cells[1], cells[3]), want):
            label, _, value = cell.rpartition(": ")
            compared += len(pair)
            if (
                [label] != [k for k, _ in pair]
                and cell != "–"
                or not same(numbers(value), [v for _, v in pair])
            ):
                wrong.append(f"{table}, {title}: {cell}, the raw data gives {pair}")
        times = [ratio(want[1][0][0])] if ours and rivals else []
        if not same(numbers(cells[2]), times):
            wrong.append(f"{table}, {title}: ratio {cells[2]}, the raw data gives {times}")
        if place_of(ours, rivals, measure) != cells[4]:
            wrong.append(f"{table}, {title}: place {cells[4]}")
        now = (times[0] if falls(measure) else 1 / times[0]) if times else 0
        if worst is not None and now > worst:
            wrong.append(f"{table}, {title}: a worse ratio stands below a better one")
        worst = now
    wanted = {n.split(" / ")[0] for n in found} - {"findings", "targets", "carry"}
    return wrong + [
        f"{table}: no line of {w}" for w in wanted - seen if any_figure(found, w)
    ], compared


def any_figure(found, workload):
    """Whether a table of the workload has a figure."""
    tables = [rows for n, (_, _, rows, _) in found.items() if n.split(" / ")[0] == workload]
    return any(re.search(r"\d", "".join(r[1:-1])) for rows in tables for r in rows)


def place_of(ours, rivals, measure):
    """ "2 of 7", or "–"."""
    if not ours or not rivals:
        return "–"
    mine = next(iter(ours.values()))
    ahead = sum(v < mine if falls(measure) else v > mine for v in rivals.values())
    return f"{ahead + 1} of {len(rivals) + 1}"


def sentence_differences(raw, markdown):
    """The sentences below the findings: totals, how often first, spinning readers."""
    figures = lambda table, title, system: column(raw, table, title, system)
    found, wrong = tables_of(markdown), []
    first = of = 0
    for name, (note, _, rows, folded) in found.items():
        main = re.search(r"Sorted by (.*?)\. robot-net \(default\)", note)
        if name == "study3":
            main = [None, ", µs"]
        if not main or folded or name.startswith("carry"):
            continue
        rivals, ours, _, _ = stand(raw, name, main[1], figures)
        place = place_of(ours, rivals, main[1])
        of += place != "–"
        first += place.startswith("1 ")
    phases = [p for r in raw["runs"] for p in r["phases"]]
    got = [e for p in phases for e in received(p)]
    lost = sum(e["lost"] for e in got) + sum(map(trips_lost, phases))
    want = [
        f"- {len(raw['runs']):,} runs (study 3 apart), of which {sum(bool(r['error']) for r in raw['runs']):,} failed. "
        f"{sum(e['count'] for e in got):,} messages received and checked, "
        f"{sum(len(trips(p)) for p in phases):,} round trips; {lost:,} lost, ",
    ]
    if of:
        want.append(f"- robot-net (default) is first in {first} of {of} tables")
    spinning = re.search(r"- spinning reader: .*: (\S+) against (\S+), (\S+) : 1\.", markdown)
    table = "latency / 1->1 / 10 kHz"
    both = [
        column(raw, table, "p50, µs", s)[0] if "latency" in raw["workloads"] else {}
        for pair in SPINNING.items()
        for s in pair
    ]
    if all(both):
        theirs, ours = both
        times = median(ours[r] / theirs[r] for r in ours if r in theirs)
        shown = numbers(" ".join(spinning.groups())) if spinning else []
        if not same(shown, [median(ours.values()), median(theirs.values()), times]):
            wrong.append(f"spinning readers: {shown}, the raw data gives {times}")
    elif spinning:
        wrong.append("spinning readers that were not measured")
    return wrong + [f"not said: {text}" for text in want if text not in markdown]


SPECIAL = {
    "study3": study3_differences,
    "findings": findings_differences,
    "targets": targets_differences,
    "topics": topic_differences,
}
