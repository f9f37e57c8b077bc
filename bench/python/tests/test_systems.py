"""Each installed system carries 1,000 checked messages of each length, between two processes.

A system that is missing is skipped; in CI that is a failure unless .ci/not-run.txt waives it.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import NoReturn

import pytest
from orchestrator import carry, find_program, python_of, server

IDS = [
    "py-zmq",
    "py-redis",
    "py-nats",
    "py-zenoh",
    "py-cyclonedds",
    "py-iceoryx2",
    "py-lcm",
    "py-ecal",
    "py-rnet",
]
LENGTHS = [0, 22, 1 << 20]
COUNT = 1000
PHASE_S = 90.0
PROGRAMS = {"redis": "redis-server", "nats": "nats-server"}
# LCM drops messages that arrive faster than they are read, so it gets them at limited rates.
RATES_HZ = {"py-lcm": [2000.0, 2000.0, 100.0]}
# Cyclone's binding turns bytes into lists of numbers: 1,000 of 1 MiB take 50 s. So they are carried
# once, in the throughput profile; in the latency one, which its driver sets up alike, 50 are.
LONG_COUNT = {("py-cyclonedds", "latency"): 50}

_numbers = itertools.count(150)
_ran: set[str] = set()


@cache
def described(python: Path) -> dict[str, dict]:
    command = [str(python), str(Path(__file__).parents[1] / "worker.py"), "--describe"]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, timeout=60)
    return json.loads(done.stdout)


def about(system: str) -> dict:
    """The worker's description of a system that can run here."""
    python = python_of(system)
    if not python.exists():
        missing(system, f"{python} is missing")
    described_here = described(python)[system]
    if described_here["unavailable"]:
        missing(system, described_here["unavailable"])
    return described_here


def missing(system: str, why: str) -> NoReturn:
    """Ends the test of a system that cannot run here."""
    pytest.skip(f"{system}: {why}: run bench/setup.sh")


@pytest.mark.parametrize("profile", ["throughput", "latency"])
@pytest.mark.parametrize("system", IDS)
def test_carries_each_message_once_and_whole(system: str, profile: str) -> None:
    described_here = about(system)
    broker = described_here["broker"]
    program = broker and find_program(PROGRAMS[broker])
    if broker and not program:
        missing(system, f"{PROGRAMS[broker]} is missing")
    with contextlib.ExitStack() as stack:
        temporary = tempfile.TemporaryDirectory(prefix="bench-", dir="/dev/shm")
        directory = Path(stack.enter_context(temporary))
        port = stack.enter_context(server(broker, program, directory)) if broker else None
        net = {"dir": str(directory), "number": next(_numbers), "broker_port": port}
        topic = {
            "name": "carry",
            "profile": profile,
            "lane": "bulk",
            "max_len": max(LENGTHS),
            "publishers": 1,
            "subscribers": 1,
            "index": 0,
        }
        rates = RATES_HZ.get(system, [None] * len(LENGTHS))
        loads = [
            {"len": length, "count": COUNT, "seconds": PHASE_S, "rate_hz": rate, "filled": False}
            for length, rate in zip(LENGTHS, rates)
        ]
        loads[-1]["count"] = LONG_COUNT.get((system, profile), COUNT)
        loads.append({**loads[-1], "len": 65_537, "count": 100, "filled": True})
        results = carry(system, net, topic, loads, PHASE_S)
    for load, (sent, received) in zip(loads, results):
        assert sent["count"] == load["count"]
        assert (received["out_of_order"], received["corrupt"]) == (0, 0), load
        assert received["count"] + received["lost"] == load["count"], load
        # A best-effort system may lose a few messages if its receiver is not scheduled.
        allowed = load["count"] // 20 if described_here["may_lose"] else 0
        assert received["lost"] <= allowed, load
        assert received["latency"]["count"] == (received["count"] if load["len"] >= 16 else 0)
    _ran.add(system)


def test_some_system_ran(request: pytest.FixtureRequest) -> None:
    everything = {item.name for item in request.session.items}
    if not any(name.startswith("test_carries") for name in everything):
        pytest.skip("the other tests were left out")
    assert _ran, "no system is installed: run bench/setup.sh"
