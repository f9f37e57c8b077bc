"""overview.svg, the picture of the README: the latency of the best-known systems, one row each.

Its figures are those of the table: medians of the repetitions. It is drawn by hand and not by matplotlib, so that one
file has the colours of light and of dark pages.
"""

import math
from xml.sax.saxutils import escape

from numbers_text import median_of, three
from parts import latency_columns

WORKLOAD, VARIANT, PHASE = "latency", "1->1", "1 kHz"
OURS = "rnet-adaptive"
# In this order. Raw TCP shows what the kernel alone costs.
SYSTEMS = [
    OURS,
    "iceoryx2-event",
    "tcp",
    "cyclonedds",
    "zenoh-tcp",
    "zmq-tcp",
    "redis-pubsub",
    "nats",
]
TITLE = "One-way latency of 64-byte messages, 1,000 per second"

WIDTH, LEFT, RIGHT, TOP, ROW = 800, 226, 660, 84, 30
# Each with its place: the text of a figure ends there.
P50_AT, P99_AT = 722, 784
STYLE = """\
.page { fill: #ffffff; stroke: #d0d7de }
text { fill: #1f2328; font: 14px system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif }
.title { font-size: 17px; font-weight: bold }
.note { fill: #59636e; font-size: 13px }
.end { text-anchor: end } .middle { text-anchor: middle }
.grid { stroke: #d0d7de }
.line { stroke: #59636e; stroke-width: 3 } circle { fill: #59636e }
.ours { font-weight: bold } text.ours { fill: #0969da }
.line.ours { stroke: #0969da } circle.ours { fill: #0969da }
@media (prefers-color-scheme: dark) {
  .page { fill: #0d1117; stroke: #3d444d }
  text { fill: #f0f6fc }
  .note { fill: #9198a1 }
  .grid { stroke: #3d444d }
  .line { stroke: #9198a1 } circle { fill: #9198a1 }
  text.ours { fill: #58a6ff }
  .line.ours { stroke: #58a6ff } circle.ours { fill: #58a6ff }
}"""


def rows(data):
    """(system, p50, p99) in µs of each system that was measured."""
    found = []
    for system in SYSTEMS:
        columns = latency_columns(VARIANT, PHASE)[:2]
        p50, p99 = (median_of(c.values(data, WORKLOAD, system).values()) for c in columns)
        if p50 and p99:
            found.append((system, p50, p99))
    return found


def svg(data):
    """The picture as text, or `None` where the workload was not run."""
    found = rows(data)
    if not found:
        return None
    scale = scale_of(min(p50 for _, p50, _ in found), max(p99 for _, _, p99 in found))
    bottom = TOP + ROW * len(found)
    height = bottom + 44
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        f'width="{WIDTH}" height="{height}">',
        f"<title>{TITLE}</title>",
        f"<style>\n{STYLE}\n</style>",
        f'<rect class="page" x="0.5" y="0.5" width="{WIDTH - 1}" height="{height - 1}" rx="8"/>',
        text(16, 32, "title", TITLE),
        text(16, TOP - 16, "note", "● half of the messages (p50), — 99 % of them (p99)"),
        text(P50_AT, TOP - 16, "note end", "p50, µs"),
        text(P99_AT, TOP - 16, "note end", "p99, µs"),
    ]
    for value in decades(found):
        x = scale(value)
        out.append(f'<line class="grid" x1="{x}" x2="{x}" y1="{TOP - 6}" y2="{bottom}"/>')
        out.append(text(x, bottom + 18, "note middle", f"{value:g} µs"))
    out.append(text(RIGHT, bottom + 36, "note end", "logarithmic scale; less is better"))
    for at, (system, p50, p99) in enumerate(found):
        y = TOP + ROW * at + ROW // 2
        ours = " ours" if system == OURS else ""
        name = "robot-net" if system == OURS else data.label(system)
        out += [
            text(LEFT - 18, y + 5, f"end{ours}", escape(name)),
            f'<line class="line{ours}" x1="{scale(p50)}" x2="{scale(p99)}" y1="{y}" y2="{y}"/>',
            f'<circle class="dot{ours}" cx="{scale(p50)}" cy="{y}" r="6"/>',
            text(P50_AT, y + 5, f"end{ours}", three(p50)),
            text(P99_AT, y + 5, f"end{ours}", three(p99)),
        ]
    return "\n".join([*out, "</svg>"]) + "\n"


def text(x, y, style, content):
    """One piece of text."""
    return f'<text x="{x}" y="{y}" class="{style}">{content}</text>'


def scale_of(least, most):
    """From µs to the position on the logarithmic axis, with margins at both ends."""
    low, high = math.log10(least / 1.3), math.log10(most * 1.1)
    return lambda us: round(LEFT + (RIGHT - LEFT) * (math.log10(us) - low) / (high - low), 1)


def decades(found):
    """The powers of ten between the least and the greatest figure, µs."""
    least, most = min(p50 for _, p50, _ in found), max(p99 for _, _, p99 in found)
    powers = range(math.ceil(math.log10(least / 1.3)), math.floor(math.log10(most * 1.1)) + 1)
    return [10.0**power for power in powers]


def write(data, out):
    """Writes overview.svg; [(title, file)] of what there is to show."""
    picture = svg(data)
    if picture is None:
        return []
    (out / "overview.svg").write_text(picture, encoding="utf-8")
    return [(TITLE, "overview.svg")]
