"""The README's figures are those of the report that it names."""

import re
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE)]

from recompute import tables_of  # noqa: E402  (found by the path above)

ROOT = HERE.parents[2]
# The columns of the README and the systems that they quote.
QUOTED = {
    "robot-net": "robot-net, adaptive",
    "ROS 2": "Cyclone DDS, ROS 2 types",
    "Zenoh": "Zenoh peer tcp",
    "iceoryx2": "iceoryx2 event wake-up",
    "ZeroMQ": "ZeroMQ PUB/SUB tcp",
    "Redis": "Redis pub/sub",
}


def test_the_readme_has_the_figures_of_its_report():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (path,) = re.findall(r"\[The comparison\]\((.*?)\)", readme)
    report = (ROOT / path).read_text(encoding="utf-8")
    (overview,) = re.findall(r"!\[.*\]\((.*?)/overview.svg\)", readme)
    assert path == f"{overview}/REPORT.md"

    _, header, rows, _ = tables_of(report)["latency / 1->1"]
    measured = {}
    for cells in rows:
        row = dict(zip(header, cells))
        measured[row["system"].strip("*")] = float(row["1 kHz p50, µs"])
    cells = lambda line: [cell.strip() for cell in line.strip("|").split("|")]
    (systems,) = [cells(line) for line in readme.splitlines() if line.startswith("| | robot-net |")]
    (shown,) = [cells(line) for line in readme.splitlines() if line.startswith("| 64 bytes at 1 kHz, p50 |")]
    for system, figure in list(zip(systems, shown))[1:]:
        assert abs(float(figure.split()[0]) - measured[QUOTED[system]]) <= 0.5, system

    (workloads,) = re.findall(r"--workloads (\S+)", report)
    (count,) = re.findall(r"runs (\d+) workloads", readme)
    assert len(workloads.split(",")) == int(count)
    assert re.search(r"^\| processor \| .*, 2 cores \|$", report, re.MULTILINE)
    assert re.search(r" messages received and checked,.* 0 with wrong content", report)
