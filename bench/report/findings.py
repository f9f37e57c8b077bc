"""The head of the report: findings generated from the data."""

import standing
import study3
import tables
import targets
from numbers_text import NOTHING, three, whole
from raw import SPINS
from table import lines_of

HEADER = [
    "work and figure",
    "robot-net (default)",
    "best other library",
    "robot-net (default) : best other library",
    "raw sockets (floor)",
    "robot-net’s place among libraries",
]

NOTE = (
    "A line for each work, that in which robot-net compares worst first. *robot-net (default)* is "
    "robot-net with its default way of waiting, reliable as the others are. Of times "
    "(µs, ms) and memory (MiB) a ratio below 1 says that robot-net is ahead, of rates one above 1. A library "
    "whose reader spins and sockets without a library are neither “best other” nor counted in places: they stand apart."
)

# A workload has several tables: the one with its main figure. Others: their first.
PRIMARY = {
    "study1": "study1 / 1->1 / flood",
    "study2": "study2 / 10 ms",
    "latency": "latency / 1->1 / 1 kHz",
    "throughput": "throughput / 1->1 / 1 MiB filled",
    "readers": "readers / 1->8 / 1 kHz",
    "state-cas": "state-cas / compare and set, 4 clients / count",
    "state-durable": "state-durable / 4 clients / set",
    "call": "call / at once",
    "publishers": "publishers / 10->1 / 100 Hz each",
    "python": "python / throughput / flood",
}
SPINNING = "latency / 1->1 / 10 kHz"


def render(data):
    """Leading systems, losses, systems that did not run, and where robot-net is behind."""
    rows = [line(s) for s in sorted(primary(data), key=worst_first)]
    if rows:
        rows = [NOTE, "", "<!-- table: findings -->", *lines_of(HEADER, rows), ""]
    closing = [*spinning(data), *behind(data), integrity(data), *absent(data)]
    return [*rows, *(f"- {text}" for text in closing), "", *targets.render(data)]


def worst_first(found):
    """The order of the lines; those without a ratio last."""
    return -(found.worse or 0)


def ranked(data, workload):
    """name -> (text, table) of the workload's tables whose rows may be compared; `shown` first."""
    built = tables.of(data, workload)
    pairs = [*built.shown, *built.folded]
    return {t.name: (text, t) for text, t in pairs if t.ranked and t.measured(data)}


def primary(data):
    """The standing in each workload's primary figure."""
    out = []
    for workload in data.workloads:
        found = ranked(data, workload)
        if found and workload != "carry":
            name = PRIMARY.get(workload)
            name = name if name in found else next(iter(found))
            out.append(standing.of_table(data, spoken(name), found[name][1]))
    return [*out, *study3.standings(data.raw)]


def spoken(name):
    """A table's name in words."""
    return name.replace("->", " → ").replace(" / ", ", ")


def line(found):
    """The cells of one finding."""
    figure = lambda pair: f"{pair[0]}: {three(pair[1])}" if pair else NOTHING
    place = f"{found.place} of {found.others + 1}" if found.place else NOTHING
    cells = [found.title, figure(found.ours), figure(found.other), three(found.ratio)]
    return [*cells, figure(found.floor), place]


def spinning(data):
    """Readers that spin, compared with each other."""
    _, table = ranked(data, "latency").get(SPINNING, (None, None))
    out = []
    for theirs, ours in SPINS.items():
        ratio = table.ratio(data, theirs) if table else None
        if ratio is not None:
            mine, other = (three(table.main_of(data, s)) for s in (ours, theirs))
            out.append(
                f"spinning reader: {data.label(ours)} against {data.label(theirs)}, "
                f"{spoken(SPINNING)}: {table.main.header}: {mine} against {other}, "
                f"{three(ratio)} : 1."
            )
    return out


def integrity(data):
    """Received, lost and wrong messages in all runs together."""
    sums = dict.fromkeys(("count", "lost", "corrupt"), 0)
    runs = data.raw.get("runs", [])
    trips, losers = 0, set()
    for workload, variant, system, label in data.all_cells():
        for phase in data.cell(workload, variant, system, label).values():
            for field in sums:
                sums[field] += phase.total(field) or 0
            trips += len(phase.round_trips())
            back = phase.round_trips_lost() or 0
            sums["lost"] += back
            if back or phase.total("lost"):
                losers.add(data.label(system))
    failed = sum(bool(r.get("error")) for r in runs)
    text = (
        f"{whole(len(runs))} runs (study 3 apart), of which {whole(failed)} failed. {whole(sums['count'])} messages "
        f"received and checked, {whole(trips)} round trips; {whole(sums['lost'])} lost, "
        f"{whole(sums['corrupt'])} with wrong content."
    )
    return text + (f" Lost by: {', '.join(sorted(losers))}." if losers else "")


def absent(data):
    """The systems that could not run here."""
    missing = [data.label(s) for s, about in data.systems.items() if about.get("unavailable")]
    return (
        [f"Not run here ({len(missing)}; each row says why): {', '.join(missing)}."]
        if missing
        else []
    )


def behind(data):
    """Where robot-net's default is not first, in all tables that rank and are not folded."""
    held = []
    for workload in data.workloads:
        if workload == "carry":
            continue
        for text, table in tables.of(data, workload).shown:
            if table.ranked:
                named = f"{workload}, {text}" if text else workload
                held.append((named, standing.of_table(data, named, table)))
    held += [("study3", found) for found in study3.standings(data.raw)]
    held = [(text, found) for text, found in held if found.place]
    if not held:
        return []
    worse = [f"{text} ({s.place} of {s.others + 1})" for text, s in held if s.place > 1]
    said = f"robot-net (default) is first in {len(held) - len(worse)} of {len(held)} tables"
    return [f"{said}; behind others in: {'; '.join(worse)}." if worse else f"{said}."]
