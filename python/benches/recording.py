"""The figures of recordings beside their targets: what `make bench-record` runs.

    .venv/bin/python python/benches/recording.py TARGET OUT [--quick]

TARGET is the folder of the release build, with `rnet` and `examples/`. OUT is the file for the figures, as JSON. Exit 1
if a program fails; the one that records a robot does where a message is neither recorded nor counted as missing. A
target that is missed is shown and is no failure: the machine may be slower than the one that it was set for.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
#: Longest time of one program, in seconds.
LIMIT_S = 900


def figures_of(*command: str | Path) -> Any:
    """What a program says on the last line of its stdout."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True, timeout=LIMIT_S)
    lines = done.stdout.splitlines()
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}: exit {done.returncode}\n" + "\n".join(lines[-5:]))
    return json.loads(lines[-1])


def measured(target: Path, quick: bool) -> dict[str, Any]:
    examples, rnet = target / "examples", target / "rnet"
    seconds = "3" if quick else "15"
    found = {
        "robot": figures_of(examples / "record_robot", rnet, seconds, "json"),
        "robot_and_camera": figures_of(examples / "record_robot", rnet, "2" if quick else "5", "camera", "json"),
        "four_streams": figures_of(examples / "record_speed", "4", "10000", "64", "2" if quick else "5", "json"),
        "opening": figures_of(examples / "open_speed", "1" if quick else "10", "json"),
    }
    messages = "20000" if quick else "1000000"
    found["reading"] = figures_of(sys.executable, HERE / "read_recording.py", messages, "--json")
    return found


def rows(found: dict[str, Any]) -> list[tuple[str, str, str, bool]]:
    """What is measured, target, figure, and whether the target is met."""
    robot, camera, streams = found["robot"], found["robot_and_camera"], found["four_streams"]
    opening, reading = found["opening"], found["reading"]
    slowest = min(figures["times"] for figures in reading.values())
    beside = "{:.1f} % of a core, {} missing; the crate mcap alone {:.1f} %".format
    lost = camera["missing"]
    return [
        (
            f"the demo robot, {robot['messages_per_s']:.0f} messages and {robot['bytes_per_s'] / 1e6:.0f} MB a second",
            "5 % of a core",
            beside(robot["cpu_percent"], robot["missing"], robot["mcap_alone_cpu_percent"]),
            robot["cpu_percent"] <= 5,
        ),
        (
            "the demo robot and a camera of 1 GB/s",
            "no uncounted loss",
            f"{camera['uncounted']} uncounted; {camera['bytes_per_s'] / 1e9:.2f} GB/s recorded, {lost} counted as missing",
            camera["uncounted"] == 0,
        ),
        (
            "4 streams of 64 bytes at 10 kHz",
            "25 % of a core",
            beside(streams["cpu_percent"], streams["missing"], streams["mcap_alone_cpu_percent"]),
            streams["cpu_percent"] <= 25,
        ),
        (
            f"opening a file of {opening['file_bytes'] / 1e9:.1f} GB",
            "100 ms",
            f"{opening['cold_ms']:.1f} ms; once it was read {opening['warm_ms']:.1f} ms",
            opening["cold_ms"] < 100,
        ),
        (
            f"a field of {next(iter(reading.values()))['messages']} messages into numpy",
            "10 times the official reader",
            ", ".join(f"{topic}: {figures['times']:.0f} times" for topic, figures in reading.items()),
            slowest >= 10,
        ),
    ]


def main() -> None:
    arguments = [argument for argument in sys.argv[1:] if argument != "--quick"]
    target, out = map(Path, arguments)
    found = measured(target, "--quick" in sys.argv)
    table = rows(found)
    longest = max(len(what) for what, *_ in table), max(len(limit) for _, limit, *_ in table)
    for what, limit, figure, is_met in table:
        print(f"{what:{longest[0]}}  {limit:{longest[1]}}  {'met   ' if is_met else 'MISSED'}  {figure}")
    machine = {"machine": platform.machine(), "kernel": platform.release(), "cores": os.cpu_count()}
    head = {"when": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), **machine, "quick": "--quick" in sys.argv}
    keys = ("what", "target", "figure", "met")
    document = {**head, "figures": found, "table": [dict(zip(keys, row, strict=True)) for row in table]}
    out.write_text(json.dumps(document, indent=1) + "\n")
    print(f"see {out}")


if __name__ == "__main__":
    main()
