"""One table: a row for each system, columns that select a figure of a phase.

Each table is preceded by a comment that names it; the test finds tables by it.
"""

from dataclasses import dataclass
from typing import Callable

from numbers_text import NOTHING, median_of, three, whole, with_range
from raw import DEFAULTS, SPINS
from remark import remark


@dataclass(frozen=True)
class Column:
    """A figure: `pick` takes it from a `Phase`; `how` combines those of the repetitions."""

    header: str
    variant: str
    phase: str
    pick: Callable
    how: str = "range"  # "range" | "median" | "max" | "sum"

    def values(self, data, workload, system):
        """Repetition -> value, without repetitions that have none."""
        cell = data.cell(workload, self.variant, system, self.phase)
        picked = {repetition: self.pick(phase) for repetition, phase in cell.items()}
        return {r: v for r, v in picked.items() if v is not None}

    def text(self, data, workload, system):
        """The cell's text."""
        values = list(self.values(data, workload, system).values())
        if not values:
            return NOTHING
        if self.how == "range":
            return with_range(values)
        if self.how == "median":
            return three(median_of(values))
        return three(max(values)) if self.how == "max" else whole(sum(values))


@dataclass(frozen=True)
class Table:
    """A table of a workload. Rows are sorted by the column `main`; where `order` names another
    table they stand as in that one, and nothing is compared."""

    name: str
    workload: str
    columns: list
    main: Column
    less_is_better: bool
    published: Callable | None = None  # system id -> the founding study's figure, or None
    order: "Table | None" = None
    note: str = ""
    below_target: bool = False  # remark rows that delivered less than they were to

    @property
    def ranked(self):
        """Whether its rows may be compared with each other."""
        return self.order is None

    def variants(self):
        """The variants that its columns show."""
        return list(dict.fromkeys(c.variant for c in [self.main, *self.columns]))

    def cells(self):
        """(variant, phase) that its columns show."""
        return list(dict.fromkeys((c.variant, c.phase) for c in [self.main, *self.columns]))

    def main_of(self, data, system):
        """The median of the main figure, or `None`."""
        return median_of(self.main.values(data, self.workload, system).values())

    def measured(self, data):
        """The systems that have the main figure, best first."""
        found = [(self.main_of(data, s), s) for s in data.rows(self.workload)]
        sign = 1 if self.less_is_better else -1
        ranked = sorted(
            (sign * value, i, s) for i, (value, s) in enumerate(found) if value is not None
        )
        return [system for _, _, system in ranked]

    def in_order(self, data):
        """The systems that have the main figure, as they stand in the table."""
        measured = self.measured(data)
        if self.ranked:
            return measured
        there = self.order.measured(data)
        return sorted(measured, key=lambda s: there.index(s) if s in there else len(there))

    def default(self, data):
        """robot-net's default configuration, where this table compares with it, or `None`."""
        measured = self.measured(data) if self.ranked else []
        return next((s for s in DEFAULTS if s in measured), None)

    def ratio(self, data, system):
        """The main figure of our default configuration (of the spinning one for a reader that
        spins) divided by the system's, repetition by repetition (those ran side by side), then
        the median."""
        ours = SPINS.get(system) or self.default(data)
        if ours is None:
            return None
        mine = self.main.values(data, self.workload, ours)
        theirs = self.main.values(data, self.workload, system)
        both = sorted(set(mine) & set(theirs))
        return median_of(mine[r] / theirs[r] for r in both if theirs[r])


def escape(text):
    """Text for a cell of a Markdown table."""
    return " ".join(str(text).split()).replace("|", "\\|")


def lines_of(header, rows):
    """A Markdown table; the first column is text, the rest are figures."""
    out = ["| " + " | ".join(map(escape, header)) + " |"]
    out.append("|---|" + "---:|" * (len(header) - 1))
    out += ["| " + " | ".join(map(escape, row)) + " |" for row in rows]
    return out


def render(data, table):
    """The table's lines of Markdown; empty without rows."""
    systems = data.rows(table.workload)
    if not systems:
        return []
    measured = table.in_order(data)
    absent = [s for s in systems if s not in measured]
    ours = table.default(data)
    header = ["system", *(c.header for c in table.columns)]
    if ours:
        header.append("robot-net (default) : this")
    if table.published:
        header.append("published by the founding study")
    body = [row(data, table, system, ours) for system in measured]
    body += [row(data, table, system, ours, absent=True) for system in absent]
    if any(last for *_, last in body):
        header.append("remarks")
    else:
        body = [cells[:-1] for cells in body]
    note = " ".join([table.note, *compared(data, table, ours, measured)]).strip()
    note = [note, ""] if note else []
    return [f"<!-- table: {table.name} -->", *note, *lines_of(header, body), ""]


def compared(data, table, ours, measured):
    """Sentences that say what the column of ratios compares."""
    if not ours:
        return []
    better = "below" if table.less_is_better else "above"
    said = [
        f"Sorted by {table.main.header}. robot-net (default) is “{data.label(ours)}”; "
        f"{better} 1 robot-net is ahead."
    ]
    for theirs, spinning in SPINS.items():
        if theirs in measured:
            said.append(
                f"Only “{data.label(theirs)}” is compared with “{data.label(spinning)}”: a reader "
                "that spins with a reader that spins."
            )
    return said


def row(data, table, system, ours, absent=False):
    """The cells of one system's row; the last is the remark."""
    strong = "**" if data.is_ours(system) else ""
    cells = [f"{strong}{data.label(system)}{strong}"]
    cells += [c.text(data, table.workload, system) for c in table.columns]
    if ours:
        cells.append(three(table.ratio(data, system)))
    if table.published:
        figure = table.published(system)
        cells.append(NOTHING if figure is None else three(figure))
    return [*cells, remark(data, table, system, absent)]
