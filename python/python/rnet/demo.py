"""The simulation of ``rnet demo`` in MuJoCo, which ``rnet demo`` starts where ``rnet[demo]`` is installed.

It takes the place of the node ``simulation`` with the embedded model (crates/rnet-bench/src/demo): the
same arm, the same messages, and the same talk with the command, which is lines of JSON.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections import Counter
from ctypes import Array, Structure, c_double, c_uint64
from typing import Any

import mujoco  # type: ignore[import-untyped, import-not-found, unused-ignore]

import rnet

MODEL = """
<mujoco>
  <option timestep="0.001"/>
  <worldbody>
    <body>
      <joint axis="0 -1 0" damping="0.1"/>
      <inertial pos="0 0 -0.5" mass="1" diaginertia="1e-6 1e-6 1e-6"/>
      <body pos="0 0 -0.5">
        <joint axis="0 -1 0" damping="0.1"/>
        <inertial pos="0 0 -0.5" mass="1" diaginertia="1e-6 1e-6 1e-6"/>
      </body>
    </body>
  </worldbody>
</mujoco>
"""
STEP_NS = 1_000_000
STIFFNESS, DAMPING = (120.0, 60.0), (16.0, 6.0)  # of the motors, which hold the arm without commands
HOLD_AFTER_NS = 20_000_000
MAX_BEHIND_NS = 5_000_000
STATES_PER_FRAME = 33
GO, COLLECT, QUIET, STOP = 0, 1, 2, 3


class Signal(Structure):
    """As in crates/rnet-bench/src/demo/robot.rs."""

    number: int
    read_ns: int
    values: Array[c_double]
    _fields_ = [("number", c_uint64), ("read_ns", c_uint64), ("values", c_double * 4)]


class ParentPipe:
    """The pipe to the command. If the command dies, this process exits."""

    def __init__(self) -> None:
        self.job = json.loads(sys.stdin.readline())
        self._came = {phase: threading.Event() for phase in (GO, COLLECT, QUIET, STOP)}
        threading.Thread(target=self._listen, name="orders", daemon=True).start()

    def _listen(self) -> None:
        for line in sys.stdin:
            order = json.loads(line)
            self._came[order.get("go", STOP)].set()
            if self.has(STOP):
                # A thread that is still reading would keep the interpreter from exiting.
                return
        os._exit(1)

    def has(self, phase: int) -> bool:
        return self._came[phase].is_set()

    def until(self, phase: int) -> None:
        self._came[phase].wait()

    def report_event(self, event: str, **content: Any) -> None:
        print(json.dumps({"event": event, **content}), flush=True)


class Simulation:
    """The physics simulation: it replaces the motors and sensors of a robot."""

    def __init__(self, node: rnet.Node) -> None:
        self.model = mujoco.MjModel.from_xml_string(MODEL)
        self.data = mujoco.MjData(self.model)
        mujoco.mj_forward(self.model, self.data)
        self.state = node.publisher("/robot/state", Signal, reliable=True, on_full=rnet.Detach(0.05))
        self.shutter = node.publisher("/camera/shutter", Signal)
        self.torque = node.subscriber("/robot/torque", Signal, keep_all=True)
        self.driven, self.hold, self.command, self.heard_ns = False, (0.0, 0.0), (0.0, 0.0), 0
        self.first: int | None = None
        self.tallies: dict[int, dict[str, int]] = {}
        self.latencies: Counter[int] = Counter()
        self.round_trips: Counter[int] = Counter()
        self.changes: list[tuple[int, bool]] = []

    def wait_for_match(self, state_subscribers: int, shutter_subscribers: int) -> None:
        self.state.wait_for_subscribers(state_subscribers, timeout=20)
        self.shutter.wait_for_subscribers(shutter_subscribers, timeout=20)
        self.torque.wait_for_publishers(1, timeout=20)

    def run(self, link: ParentPipe) -> None:
        due_ns = rnet.now_ns()
        while not link.has(QUIET):
            self.step()
            due_ns = max(due_ns + STEP_NS, rnet.now_ns() - MAX_BEHIND_NS)
            self.listen(due_ns)

    def listen(self, until_ns: int) -> None:
        """Receives torques until then, and at least those that are available."""
        while True:
            left_s = max(0, until_ns - rnet.now_ns()) * 1e-9
            try:
                sample = self.torque.recv_sample(timeout=left_s)
            except (rnet.WaitTimeoutError, rnet.PeerLostError):
                if left_s == 0:
                    return
                continue
            self.take(sample)

    def take(self, sample: rnet.Sample) -> None:
        torque, now_ns = Signal.from_buffer_copy(sample), rnet.now_ns()
        self.latencies[_rounded(sample.latency_ns)] += 1
        self.round_trips[_rounded(now_ns - torque.read_ns)] += 1
        tally = self.tallies.setdefault(
            sample.publisher, {"received": 0, "out_of_order": 0, "corrupt": 0, "next": 0}
        )
        if self.first is None:
            self.first = torque.number
        if torque.number < tally["next"]:
            tally["out_of_order"] += 1
        else:
            tally["received"] += 1
            tally["next"] = torque.number + 1
        self.command, self.heard_ns = (torque.values[0], torque.values[1]), now_ns
        self.drive(True, now_ns)

    def drive(self, driven: bool, now_ns: int) -> None:
        """The controller drives the motors, or they hold the arm in place."""
        if driven != self.driven:
            self.driven, self.hold = driven, tuple(self.data.qpos)
            self.changes.append((now_ns, driven))

    def step(self) -> None:
        now_ns, data = rnet.now_ns(), self.data
        if now_ns - self.heard_ns > HOLD_AFTER_NS:
            self.drive(False, now_ns)
        for i, command in enumerate(self.command):
            held = STIFFNESS[i] * (self.hold[i] - data.qpos[i]) - DAMPING[i] * data.qvel[i]
            data.qfrc_applied[i] = command if self.driven else data.qfrc_bias[i] + held
        mujoco.mj_step(self.model, data)
        values = (c_double * 4)(*data.qpos, *data.qvel)
        self.state.send(Signal(self.state.sent, rnet.now_ns(), values))
        if self.state.sent % STATES_PER_FRAME == 0:
            self.shutter.send(Signal(self.shutter.sent, rnet.now_ns(), values))

    def report(self) -> dict[str, Any]:
        sent = [
            {"topic": publisher.topic, "publisher": publisher.id, "count": publisher.sent}
            for publisher in (self.state, self.shutter)
        ]
        heard = {
            "topic": self.torque.topic,
            "first": self.first,
            "tallies": self.tallies,
            "counted_lost": sum(self.torque.lost.values()),
            "latencies": list(self.latencies.items()),
        }
        trips = list(self.round_trips.items())
        return {"sent": sent, "heard": [heard], "changes": self.changes, "round_trips": trips}


def _rounded(ns: int) -> int:
    """Rounded to three digits, so that a long run has few different values."""
    low_bits = max(0, ns.bit_length() - 10)
    return max(1, ns >> low_bits << low_bits)


def main() -> None:
    link = ParentPipe()
    place, job = link.job["node"], link.job["role"]["demo"]
    node = rnet.Node(place["name"], dir=place["dir"], domain=place["domain"])
    simulation = Simulation(node)
    simulation.wait_for_match(*job["subscriber_counts"])
    link.report_event("ready")
    link.until(GO)
    simulation.run(link)
    link.report_event("sent")
    while not link.has(COLLECT):
        simulation.listen(rnet.now_ns() + 10 * STEP_NS)
    simulation.listen(0)
    link.report_event("done", phase=GO, report=simulation.report())
    link.until(STOP)
    node.close()


if __name__ == "__main__":
    main()
