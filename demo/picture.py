"""Draws the picture of the demo for the README: senders, receivers, rates, latencies and losses of a run.

    python demo/picture.py target/demo/summary.json docs/images/demo.svg
"""

import json
import sys
from html import escape
from pathlib import Path

from tables import microseconds

SENDERS = {
    "/robot/state": "simulation",
    "/camera/shutter": "simulation",
    "/robot/torque": "controller",
    "/robot/estimate": "estimator",
    "/robot/force": "force",
    "/camera/image": "camera",
    "/battery/state": "battery",
    "/operator/drive": "operator",
    "/safety/stop": "safety",
}
URGENT = {"/safety/stop"}

WIDTH, TOP, ROW, BOX = 1000, 92, 46, 30  # px
LEFT, TOPIC, RIGHT = (20, 130), (320, 360), (850, 130)  # x, width of the columns, px
INK, PAPER, GREY, BLUE, RED = "#1b1f24", "#ffffff", "#8b949e", "#0b62d6", "#cf222e"


def box(x, y, width, title, detail="", color=GREY):
    """A rectangle with its middle at `y`, and its text."""
    text = [f'<text x="{x + 10}" y="{y + 5}" fill="{INK}">{escape(title)}</text>']
    if detail:
        end = x + width - 10
        text.append(f'<text x="{end}" y="{y + 5}" fill="{INK}" text-anchor="end">{escape(detail)}</text>')
    frame = f'width="{width}" height="{BOX}" rx="6" fill="{PAPER}" stroke="{color}" stroke-width="1.5"'
    return f'<rect x="{x}" y="{y - BOX // 2}" {frame}/>' + "".join(text)


def arrow(begin, end, color):
    (x0, y0), (x1, y1) = begin, end
    middle = (x0 + x1) / 2
    path = f"M{x0},{y0} C{middle},{y0} {middle},{y1} {x1 - 7},{y1}"
    return f'<path d="{path}" fill="none" stroke="{color}" stroke-width="1.3" marker-end="url(#{color[1:]})"/>'


def places(names, rows):
    """The middle of each name's box, evenly distributed over the rows: {name: y in px}."""
    step = ROW * rows / len(names)
    return {name: round(TOP + step * (at + 0.5)) for at, name in enumerate(names)}


def picture(summary):
    """The SVG of a run, from its summary.json."""
    subscriptions = summary["accounting"]["subscriptions"]
    topics = [topic for topic in SENDERS if topic in summary["topics"]]
    hearers = sorted({s["node"].lstrip("/") for s in subscriptions})
    right = places(hearers, len(topics))
    left = places(sorted({SENDERS[topic] for topic in topics}, key=list(SENDERS.values()).index), len(topics))
    rows = places(topics, len(topics))
    lines, boxes = [], []
    for topic in topics:
        figures, color = summary["topics"][topic], RED if topic in URGENT else BLUE
        p50 = microseconds(figures["latency_us"]["p50"])
        rate = f"{figures['rate_hz']:,.0f} Hz" if figures["rate_hz"] >= 1 else "urgent"
        detail = f"{rate} · {p50} µs · {figures['lost']} lost"
        boxes.append(box(TOPIC[0], rows[topic], TOPIC[1], topic, detail, color))
        lines.append(arrow((sum(LEFT), left[SENDERS[topic]]), (TOPIC[0], rows[topic]), color))
        for node in sorted({s["node"].lstrip("/") for s in subscriptions if s["topic"] == topic}):
            lines.append(arrow((sum(TOPIC), rows[topic]), (RIGHT[0], right[node]), color))
    for column, nodes in ((LEFT, left), (RIGHT, right)):
        for node, y in nodes.items():
            language = {"Rust": "Rs", "Python": "Py", "C++": "C++"}[summary["nodes"][node]["language"]]
            boxes.append(box(column[0], y, column[1], node, language))
    heads = "".join(
        f'<marker id="{color[1:]}" viewBox="0 0 8 8" refX="1" refY="4" markerWidth="6" markerHeight="6" orient="auto">'
        f'<path d="M0,0 L8,4 L0,8 Z" fill="{color}"/></marker>'
        for color in (BLUE, RED)
    )
    recovery, books = summary["recovery"], summary["accounting"]
    title = f"{len(summary['nodes'])} processes, {summary['seconds']:.0f} s: {books['received']:,} messages received, "
    title += f"{books['unaccounted']} lost without being counted"
    kill = f"controller killed: safe hold after {recovery['held_after_ms']:.0f} ms, loop closed again "
    kill += f"{recovery['recovery_ms']:.0f} ms after the restart · latency: median from send to receive"
    height = TOP + ROW * len(topics) + 16
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        f'font-family="Helvetica, Arial, sans-serif" font-size="14"><title>{escape(title)}</title><defs>{heads}</defs>'
        f'<rect width="{WIDTH}" height="{height}" fill="{PAPER}"/>'
        f'<text x="20" y="34" font-size="20" fill="{INK}">{escape(title)}</text>'
        f'<text x="20" y="60" fill="{INK}">{escape(kill)}</text>{"".join(lines)}{"".join(boxes)}</svg>\n'
    )


if __name__ == "__main__":
    source, target = map(Path, sys.argv[1:])
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(picture(json.loads(source.read_text())))
