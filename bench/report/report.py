"""Makes REPORT.md, its plots and study 2's files of times from the raw data of a comparison.

    python report.py out.json.gz --out DIR

What is computed how is docs/benchmark-method.md; tests/test_report.py computes all of it again.
"""

import argparse
import os
import sys
from pathlib import Path

import findings
import head
import overview
import plots
import raw as raw_data
import round_trips
import study3
import table
import tables
import topics

# The order of the report; workloads that are not named here follow.
ORDER = [
    "study1",
    "study1-kv",
    "study2",
    "study2-slow",
    "study3",
    "latency",
    "sizes",
    "throughput",
    "readers",
    "publishers",
    "call",
    "sierra_nevada",
    "urgent",
    "hosts-throughput",
    "hosts-latency",
    "hosts-readers",
    "hosts-urgent",
    "state",
    "state-sizes",
    "state-cas",
    "state-durable",
    "state-watch",
    "cpp",
    "python",
    "carry",
]


def markdown(data, pictures, method):
    """The report's text. `pictures`: workload -> [(title, file)]; `method`: where the method is."""
    out = [*head.title(data), "## Findings", "", *findings.render(data)]
    out += head.reading(method)
    out += [*head.machine(data), *head.systems(data)]
    for workload in in_order(data):
        if workload == "study3":
            out += study3.render(data.raw)
        else:
            out += section(data, workload, pictures.get(workload, []))
    return "\n".join(out).rstrip() + "\n"


def in_order(data):
    """The workloads in the order of the report."""
    known = [*data.workloads, *data.ran_workloads(), "study3"]
    rank = {name: i for i, name in enumerate(ORDER)}
    return sorted(dict.fromkeys(known), key=lambda w: rank.get(w, len(ORDER)))


def section(data, workload, pictures):
    """One workload: its description, plots and tables."""
    about = data.workloads.get(workload, {})
    out = [
        f"## {about.get('title') or workload}",
        "",
        f"`{workload}`: {about.get('about', '')}",
        "",
    ]
    for title, file in pictures:
        out += [f"![{title}]({file})", ""]
    built = tables.of(data, workload)
    for heading, shown in built.shown:
        lines = table.render(data, shown)
        out += ([f"### {heading}", ""] if heading and lines else []) + lines
    if built.folded:
        out += ["<details><summary>each with ranges, cost and loss</summary>", ""]
        for heading, folded in built.folded:
            out += [f"### {heading}", "", *table.render(data, folded)]
        out += ["</details>", ""]
    if workload == topics.WORKLOAD:
        out += topics.render(data)
    if workload in round_trips.WORKLOADS and data.pairs(workload):
        out += ["Each round trip, in the study's two columns: `study2/<system>-<period>.txt`.", ""]
    return out


def method_link(out):
    """The way from the report to the method, where both are in one repository."""
    root = Path(__file__).resolve().parents[2]
    page = root / "docs" / "benchmark-method.md"
    if root in out.resolve().parents:
        return f"[docs/benchmark-method.md]({os.path.relpath(page, out.resolve())})"
    return "`docs/benchmark-method.md`"


def write(source, out):
    """Writes the whole report of `source` into the folder `out`."""
    data = raw_data.Data(raw_data.load(source))
    out.mkdir(parents=True, exist_ok=True)
    pictures = plots.draw(data, out)
    pictures[overview.WORKLOAD] = overview.write(data, out) + pictures.get(overview.WORKLOAD, [])
    round_trips.write_files(data, out)
    text = markdown(data, pictures, method_link(out))
    (out / "REPORT.md").write_text(text, encoding="utf-8")


def main():
    """The command line."""
    parser = argparse.ArgumentParser(description="makes REPORT.md and its plots from raw data")
    parser.add_argument(
        "raw", type=Path, help="what `compare run --json` wrote (.json or .json.gz)"
    )
    parser.add_argument("--out", type=Path, required=True, help="the folder for the report")
    args = parser.parse_args()
    try:
        write(args.raw, args.out)
    except (OSError, ValueError) as error:
        print(f"report: {error}", file=sys.stderr)
        return 1
    print(args.out / "REPORT.md")
    return 0


if __name__ == "__main__":
    sys.exit(main())
