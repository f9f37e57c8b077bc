"""The tables of the work between two hosts: what crosses the cable, and what the links cost."""

from dataclasses import dataclass

from parts import (
    Tables,
    behind_column,
    cost_columns,
    div,
    heading,
    latency_columns,
    lost_column,
    name,
)
from table import Column, Table

# The length of the images beside the event, bytes: the raw data has one length for each phase.
IMAGE_LEN = 640 * 480 * 3
WIRE = "bytes on the cable per message sent"


@dataclass(frozen=True)
class Beside(Column):
    """A figure as a multiple of the same in another variant, repetition by repetition."""

    other: str = ""

    def values(self, data, workload, system):
        """Repetition -> ratio, where both have the figure."""
        mine = super().values(data, workload, system)
        theirs = Column("", self.other, self.phase, self.pick).values(data, workload, system)
        return {r: mine[r] / theirs[r] for r in mine if theirs.get(r)}


def cpu_columns(variant, phase):
    """CPU of the parts, as a share of one core."""
    parts = (("publisher", "publishers"), ("subscriber", "subscribers"))
    parts += (("link a", "the publishers’ link"), ("link b", "the subscribers’ link"))
    parts += (("server", "the server"),)
    return [
        Column(
            f"CPU of {text}, % of a core", variant, phase, lambda p, w=who: p.cpu_percent(w), "median"
        )
        for who, text in parts
    ]


def throughput_table(variant, phase):
    """As fast as possible."""
    rate = lambda p: div(p.rate(), 1e3)
    data_rate = lambda p: div(p.bytes_per_s(), 1e6)
    main = Column("delivered at each reader, k msg/s", variant, phase, rate)
    columns = [
        main,
        Column("delivered at each reader, MB/s", variant, phase, data_rate),
        Column(f"{WIRE}, B", variant, phase, lambda p: p.wire_per_message(), "median"),
        lost_column(variant, phase),
        *cost_columns(variant, phase),
    ]
    workload = "hosts-throughput"
    return Table(name(workload, variant, phase), workload, columns, main, False)


def latency_table(variant, phase):
    """Paced: times, and the CPU of each part."""
    columns = [
        *latency_columns(variant, phase),
        lost_column(variant, phase),
        *cpu_columns(variant, phase),
        behind_column(variant, phase),
    ]
    workload = "hosts-latency"
    return Table(name(workload, variant, phase), workload, columns, columns[0], True)


def throughput(_data, _workload, variants, phases):
    """Each size alone."""
    pairs = [(v, p) for v in variants for p in phases]
    return Tables([(heading(v, p), throughput_table(v, p)) for v, p in pairs])


def latency(_data, _workload, variants, phases):
    """Each size alone."""
    pairs = [(v, p) for v in variants for p in phases]
    return Tables([(heading(v, p), latency_table(v, p)) for v, p in pairs])


def readers(_data, workload, variants, phases):
    """Bytes on the cable with ten subscribers and with one."""
    tables = Tables()
    one, ten = variants[0], variants[-1]
    shown = lambda variant: variant.replace("->", "→")
    for phase in phases:
        wire = lambda p: p.wire_per_message()
        main = Beside(f"{WIRE}: {shown(ten)} as a multiple of {shown(one)}, times", ten, phase, wire, other=one)
        columns = [
            *(Column(f"{shown(v)}: {WIRE}, B", v, phase, wire) for v in variants),
            main,
            *(
                Column(f"{shown(v)}: p50, µs", v, phase, lambda p: p.quantile_us(0.5), "median")
                for v in variants
            ),
            *(
                Column(f"{shown(v)}: lost, messages", v, phase, lambda p: p.total("lost"), "sum")
                for v in variants
            ),
        ]
        table = Table(name(workload, phase), workload, columns, main, True)
        tables.shown.append((heading(phase), table))
    return tables
