"""The plots. Each can be read without the text: title, unit, lines and rows named where they are.

robot-net is blue, each configuration a mark of its own and the default one bold; the others are
grey or in the colours of Okabe and Ito, which people with any
colour vision can tell apart; where there are many lines, their names stand at their ends.
"""

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt  # noqa: E402  (the backend comes first)

import plot_lines
import plot_rows
import plot_stores
from plot_style import STYLE


def draw(data, out):
    """Draws what there is data for; returns workload -> [(title, file)]."""
    pictures = {}
    with matplotlib.rc_context(STYLE):
        for workload, file, title, figure in all_of(data):
            figure.savefig(out / file, dpi=100)
            plt.close(figure)
            pictures.setdefault(workload, []).append((title, file))
    return pictures


def all_of(data):
    """(workload, file, title, figure), lazily: one figure is open at a time."""
    yield from plot_rows.study1(data)
    yield from plot_lines.study2(data)
    yield from plot_rows.latency(data)
    yield from plot_lines.sizes(data)
    yield from plot_lines.readers(data)
    yield from plot_rows.urgent(data)
    yield from plot_rows.robot(data)
    yield from plot_stores.state(data)
    yield from plot_stores.watch(data)
    yield from plot_rows.python(data)
