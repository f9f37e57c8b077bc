"""The rank of robot-net's default configuration in one table, for the findings."""

from dataclasses import dataclass

from raw import FLOOR


@dataclass(frozen=True)
class Standing:
    """One main figure. `ours`, `other` and `floor` are (name, figure) or `None`: robot-net's
    default, the best library of others, the best raw socket."""

    title: str
    ours: tuple | None
    other: tuple | None
    floor: tuple | None
    ratio: float | None
    less_is_better: bool
    ahead: int  # libraries of others that are better than our default
    others: int

    @property
    def place(self):
        """robot-net's place among the others, or `None` where there is none to have."""
        return self.ahead + 1 if self.ours and self.others else None

    @property
    def worse(self):
        """How many times worse than the best other library our default is; `None` without both."""
        if not self.ratio:
            return None
        return self.ratio if self.less_is_better else 1 / self.ratio


def of_table(data, text, table):
    """The standing in a table."""
    order = table.measured(data)
    ours = table.default(data)
    rivals = [s for s in order if data.is_rival(s)]
    other = next(iter(rivals), None)
    floor = next((s for s in order if s in FLOOR), None)
    figure = lambda s: (data.label(s), table.main_of(data, s)) if s else None
    ahead = sum(order.index(s) < order.index(ours) for s in rivals) if ours else 0
    return Standing(
        title=f"{text}: {table.main.header}",
        ours=figure(ours),
        other=figure(other),
        floor=figure(floor),
        ratio=table.ratio(data, other) if ours and other else None,
        less_is_better=table.less_is_better,
        ahead=ahead,
        others=len(rivals),
    )
