"""`make demo HOSTS=2`: whole runs over two network namespaces, which need Zenoh and root: `make test-net`."""

import signal

import pytest
import two_hosts
from judge import CLOSED, FALLEN, HELD, HOLD_DEADLINE_MS
from test_demo import NODES, TOPICS, finish, processes_of, start

pytestmark = pytest.mark.skipif(two_hosts.missing() is not None, reason=str(two_hosts.missing()))

CROSSING = {
    "motors": {"/robot/torque"},
    "control": TOPICS - {"/robot/torque", "/robot/estimate", "/operator/drive"},
}


def test_robot_is_held_while_cable_is_cut_and_losses_are_counted():
    code, out, err, summary = finish(start(DEMO_HOSTS="2", DEMO_SECONDS="10"))
    assert code == 0, out + err
    assert summary["ok"] and summary["failures"] == []
    assert set(summary["nodes"]) == NODES | {"watcher2"}
    assert set(summary["topics"]) == TOPICS

    recovery = summary["recovery"]
    assert recovery["down_s"] >= 1.5
    assert 0 <= recovery["held_after_simulated_ms"] <= HOLD_DEADLINE_MS
    assert recovery["recovery_ms"] > 0
    states = [verdict["state"] for verdict in summary["verdicts"]]
    assert states.count(CLOSED) >= 2 and HELD in states and FALLEN not in states
    assert "cable         cut" in out

    assert summary["accounting"]["unaccounted"] == 0
    assert {host: set(seen["topics"]) for host, seen in summary["hosts"].items()} == CROSSING
    for seen in summary["hosts"].values():
        assert seen["link"]["state"] == "STATE_CONNECTED" and seen["link"]["topics"]
        assert abs(abs(seen["link"]["clock_offset_us"]) - two_hosts.hosts.CLOCK_OFFSET_S * 1e6) < 1e6
        for name, topic in seen["topics"].items():
            assert topic["crossed"] > 0, name
            # The clocks of the hosts are 5000 s apart.
            assert 0 < topic["latency_us"]["p50"] < 1e6, name
    # 10,000 messages a second for 2 s: more than any log here holds.
    assert sum(summary["hosts"]["control"]["topics"]["/robot/force"]["lost"].values()) > 0


def test_ctrl_c_leaves_nothing_behind_on_either_host():
    demo = start(DEMO_HOSTS="2", DEMO_SECONDS="60")
    for line in demo.stdout:
        if "all joined" in line:
            break
    assert len(processes_of(f"demo_{demo.pid}")) >= len(NODES) + 3  # a second watcher, and two links
    demo.send_signal(signal.SIGINT)
    assert finish(demo)[0] == 130
