"""Which tables each workload gets. All are made from what the raw data holds: a variant or a phase
that was not run has no table, and a workload that is unknown here gets one table for each phase."""

import calls
import hosts
import published
import stores
from parts import (
    Tables,
    behind_column,
    cost_columns,
    div,
    heading,
    latency_cells,
    latency_columns,
    latency_table,
    lost_column,
    name,
    rate_table,
)
from round_trips import BANDS, band_median_us, max_ms
from table import Column, Table

# What moves beside the event: the length of the bulk messages, bytes. The raw data has one length for
# each phase, here that of the event.
BULK_LEN = {"urgent": 64 * 1024, "hosts-urgent": hosts.IMAGE_LEN}


def of(data, workload):
    """The tables of a workload."""
    variants = data.variants(workload) or [""]
    phases = data.phases(workload) or [""]
    tables = BUILDERS.get(workload, each_phase)(data, workload, variants, phases)
    ran = set(data.pairs(workload))
    if not ran:
        # Nothing was measured: one table, whose rows say why.
        return Tables(tables.shown[:1])
    keep = lambda pairs: [(text, t) for text, t in pairs if ran & set(t.cells())]
    return Tables(keep(tables.shown), keep(tables.folded))


def each_phase(_data, workload, variants, phases):
    """A latency table for each variant and phase."""
    pairs = [(v, p) for v in variants for p in phases]
    return Tables([(heading(v, p), latency_table(workload, v, p)) for v, p in pairs])


def study1(data, workload, variants, phases):
    """The founding study's message: at full rate, then at 80 % of the delivered rate."""
    tables = Tables()
    for variant in variants:
        for phase in phases:
            if phase == "limited":
                table = limited_table(workload, variant, phase)
            else:
                figure = lambda system, v=variant: published.study1(system, v)
                table = rate_table(workload, variant, phase, figure)
            tables.shown.append((heading(variant, phase), table))
    return tables


LIMITED_NOTE = (
    "Each system runs at 80 % of the rate that it delivered itself in the flood before, so each at "
    "another rate. It is set up for throughput (batches, which the harness flushes every 0.1 ms): "
    "its latency here is not that of the latency tables, and the rows are not to be compared with "
    "each other. They stand in the order of the flood."
)


def limited_table(workload, variant, phase):
    """The writer limited to what the readers take: each system at its own rate, so not ranked."""
    target = lambda p: div(p.target(), 1e3)
    rate = lambda p: div(p.rate(), 1e3)
    columns = [
        Column("target, k msg/s", variant, phase, target),
        Column("delivered at each reader, k msg/s", variant, phase, rate),
        *latency_columns(variant, phase),
        behind_column(variant, phase),
        lost_column(variant, phase),
        *cost_columns(variant, phase),
    ]
    return Table(
        name(workload, variant, phase),
        workload,
        columns,
        columns[1],
        False,
        order=rate_table(workload, variant, "flood"),
        note=LIMITED_NOTE,
        below_target=True,
    )


def study2(_data, workload, variants, phases):
    """Round trips by bands of size."""
    tables = Tables()
    for variant in variants:
        phase = phases[0]
        columns = [
            Column(f"{band.name}, µs", variant, phase, lambda p, b=band: band_median_us(p, b))
            for band in BANDS
        ]
        main = columns[-1]
        columns.append(Column("max of all sizes, ms", variant, phase, max_ms, "max"))
        lost = lambda p: p.round_trips_lost()
        columns.append(Column("lost, round trips", variant, phase, lost, "sum"))
        columns += cost_columns(variant, phase, "round trip")
        table = Table(name(workload, variant), workload, columns, main, True)
        tables.shown.append((f"one every {variant}", table))
    return tables


def by_phase(data, workload, variants, phases):
    """The latencies of every phase side by side; each phase alone behind a fold."""
    tables = Tables()
    for variant in variants:
        columns = []
        for phase in phases:
            columns += latency_cells(phase, variant, phase)
        table = Table(name(workload, variant), workload, columns, columns[0], True)
        tables.shown.append((heading(variant), table))
        for phase in phases:
            tables.folded.append((heading(variant, phase), latency_table(workload, variant, phase)))
    return tables


def sizes(data, workload, variants, phases):
    """p50 over size; each size alone behind a fold."""
    tables = Tables()
    for variant in variants:
        p50 = lambda p: p.quantile_us(0.5)
        columns = [Column(f"{s} p50, µs", variant, s, p50, "median") for s in phases]
        table = Table(name(workload, variant), workload, columns, columns[-1], True)
        tables.shown.append((heading(variant), table))
        for phase in phases:
            tables.folded.append((heading(variant, phase), latency_table(workload, variant, phase)))
    return tables


def by_variant(data, workload, variants, phases):
    """The latencies of every variant side by side; each alone behind a fold."""
    tables = Tables()
    for phase in phases:
        columns = []
        for variant in variants:
            columns += latency_cells(variant.replace("->", "→"), variant, phase)
        # The median of the last variant.
        main = columns[-4]
        tables.shown.append(
            (heading(phase), Table(name(workload, phase), workload, columns, main, True))
        )
        for variant in variants:
            tables.folded.append((heading(variant, phase), latency_table(workload, variant, phase)))
    return tables


MEMORY_NOTE = (
    "*In all* is *processes* and *shared files* together. *Processes*: heap, stacks, program files "
    "and unnamed shared memory of all workers and the server; a page that several have is divided "
    "among them. *Shared files*: the blocks of the files in /dev/shm that they map or that lie in "
    "the run's directory. The harness is in it, alike for all: a thread or callback and a histogram "
    "for each reader. The kernel's socket buffers are not. Each endpoint has a node, session or connection "
    "as the system's settings say."
)


def memory(_data, workload, variants, phases):
    """Memory of many topics, and of the processes with one topic each."""
    tables = Tables()
    for phase in phases:
        columns = []
        for variant in variants:
            cell = lambda text, pick, v=variant: Column(f"{v} {text}", v, phase, pick)
            columns += [
                cell("processes, MiB", lambda p: p.memory_mib("processes_kib")),
                cell("shared files, MiB", lambda p: p.memory_mib("shared_kib")),
                cell("in all, MiB", lambda p: p.memory_mib()),
            ]
        main = columns[-1]
        last = variants[-1]
        per = lambda p: p.memory_per_publisher_kib()
        columns.append(Column(f"{last} in all per publisher, KiB", last, phase, per))
        lost = lambda p: p.total("lost")
        columns.append(Column(f"{last} lost, messages", last, phase, lost, "sum"))
        cpu = lambda p: p.cpu_per_s()
        columns.append(Column(f"{last} CPU of all processes, s/s", last, phase, cpu))
        table = Table(name(workload, phase), workload, columns, main, True, note=MEMORY_NOTE)
        tables.shown.append((heading(phase), table))
    return tables


def throughput(data, workload, variants, phases):
    """Messages and bytes per second."""
    tables = Tables()
    for variant in variants:
        for phase in phases:
            main = Column(
                "delivered at each reader, k msg/s", variant, phase, lambda p: div(p.rate(), 1e3)
            )
            columns = [
                main,
                Column(
                    "delivered at each reader, GB/s",
                    variant,
                    phase,
                    lambda p: div(p.bytes_per_s(), 1e9),
                ),
                *latency_columns(variant, phase),
                lost_column(variant, phase),
                *cost_columns(variant, phase),
            ]
            table = Table(name(workload, variant, phase), workload, columns, main, False)
            tables.shown.append((heading(variant, phase), table))
    return tables


def urgent(data, workload, variants, phases):
    """The event unloaded and loaded, and what the bulk moved meanwhile."""
    tables = Tables()
    loaded = "loaded" if "loaded" in phases else phases[-1]
    for variant in variants:
        columns = []
        for phase in phases:
            columns += latency_columns(variant, phase, "event", f"{phase}: ")
        main = next(c for c in columns if c.phase == loaded and "p99" in c.header)
        bulk = lambda p: div(p.bytes_per_s("!event", BULK_LEN[workload]), 1e6)
        events_lost = lambda p: p.total("lost", "event")
        columns += [
            Column("loaded: bulk delivered, MB/s", variant, loaded, bulk),
            Column("loaded: events lost, messages", variant, loaded, events_lost, "sum"),
            *(behind_column(variant, phase, f"{phase}: ") for phase in phases),
        ]
        table = Table(name(workload, variant), workload, columns, main, True)
        tables.shown.append((heading(variant), table))
    return tables


def sierra_nevada(data, workload, variants, phases):
    """A robot of ten nodes: totals of each system. Topics are `topics.py`."""
    tables = Tables()
    for variant in variants:
        for phase in phases:
            count = lambda f: lambda p: p.total(f)
            main = Column("mean latency, µs", variant, phase, lambda p: p.mean_us())
            columns = [
                Column("received, messages", variant, phase, count("count"), "sum"),
                Column("late, messages", variant, phase, count("late"), "sum"),
                Column("too late, messages", variant, phase, count("too_late"), "sum"),
                Column("lost, messages", variant, phase, count("lost"), "sum"),
                main,
                Column("p99, µs", variant, phase, lambda p: p.quantile_us(0.99)),
                Column("p99.9, µs", variant, phase, lambda p: p.quantile_us(0.999)),
                Column("max, µs", variant, phase, lambda p: p.max_us(), "max"),
                behind_column(variant, phase),
                Column("CPU of all processes, s/s", variant, phase, lambda p: p.cpu_per_s()),
                Column("memory of all processes, MiB", variant, phase, lambda p: p.rss_mib()),
            ]
            table = Table(name(workload, variant, phase), workload, columns, main, True)
            tables.shown.append((heading(variant, phase), table))
    return tables


def carry(_data, workload, variants, phases):
    """No figure, a test: what each driver carried."""
    tables = Tables()
    for variant in variants:
        columns = []
        for phase in phases:
            for count, text in (("count", "received"), ("lost", "lost"), ("corrupt", "corrupt")):
                pick = lambda p, f=count: p.total(f)
                columns.append(Column(f"{phase}: {text}, messages", variant, phase, pick, "sum"))
        table = Table(name(workload, variant), workload, columns, columns[0], False)
        tables.shown.append((heading(variant), table))
    return tables


def by_profile(_data, workload, variants, phases):
    """Flat out in one variant, and paced in the other."""
    tables = Tables()
    for variant in variants:
        for phase in phases:
            make = rate_table if variant == "throughput" else latency_table
            tables.shown.append((heading(variant, phase), make(workload, variant, phase)))
    return tables


BUILDERS = {
    "study1": study1,
    "study1-kv": stores.study1_kv,
    "study2": study2,
    "study2-slow": study2,
    "call": calls.tables_of,
    "latency": by_phase,
    "sizes": sizes,
    "throughput": throughput,
    "readers": by_variant,
    "sierra_nevada": sierra_nevada,
    "memory": memory,
    "urgent": urgent,
    "hosts-throughput": hosts.throughput,
    "hosts-latency": hosts.latency,
    "hosts-readers": hosts.readers,
    "hosts-urgent": urgent,
    "state": stores.calls,
    "state-sizes": stores.sizes,
    "state-cas": stores.counters,
    "state-durable": stores.calls,
    "state-watch": by_phase,
    "cpp": by_profile,
    "python": by_profile,
    "carry": carry,
}
