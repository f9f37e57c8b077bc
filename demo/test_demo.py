"""Tests of the whole demo: a successful run, runs that must fail, and the counting alone.

The runs need the build of `make demo`; they take DEMO_SECONDS = 6 and a start each.
"""

import copy
import json
import os
import pathlib
import signal
import subprocess
import sys
import time
from xml.etree import ElementTree

import accounting
import judge
import picture
import pytest
from domain import Domain
from judge import ABANDONED, CLOSED, FALLEN, HELD, SETTLING, WINDOW_NS

ROOT = pathlib.Path(__file__).resolve().parent.parent
SUMMARY = ROOT / "target" / "demo" / "summary.json"
SHM = pathlib.Path(os.environ.get("RNET_DIR") or "/dev/shm")
NODES = {
    *("simulation", "controller", "estimator", "force", "camera"),
    *("battery", "safety", "operator", "logger", "watcher"),
}
TOPICS = {
    "/robot/state",
    "/robot/torque",
    "/robot/estimate",
    "/robot/force",
    "/camera/shutter",
    "/camera/image",
    "/battery/state",
    "/operator/drive",
    "/safety/stop",
}


def start(**environment):
    return subprocess.Popen(
        [sys.executable, ROOT / "demo" / "run.py"],
        env={**os.environ, "DEMO_SECONDS": "6", **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(demo):
    """(exit code, stdout, stderr, summary); also checks that nothing is left behind."""
    out, err = demo.communicate()
    domain = f"demo_{demo.pid}"
    assert not list(SHM.glob(f"rnet-*-{domain}"))
    assert not processes_of(domain)
    return demo.returncode, out, err, json.loads(SUMMARY.read_text()) if SUMMARY.exists() else None


def processes_of(domain):
    """Processes whose environment contains the domain."""
    found = []
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if f"RNET_DOMAIN={domain}\0".encode() in (process / "environ").read_bytes() + b"\0":
                found.append((process / "cmdline").read_text())
        except OSError:
            pass  # it has exited, or belongs to another user
    return found


# --- whole runs ---------------------------------------------------------------------------------------------


def test_run_succeeds_with_complete_summary():
    code, out, err, summary = finish(start())
    assert code == 0, out + err
    assert summary["ok"] and summary["failures"] == []
    assert summary["seconds"] >= 6

    assert set(summary["topics"]) == TOPICS
    for name, topic in summary["topics"].items():
        assert topic["messages"] > 0 and topic["lost"] >= 0, name
        latency = topic["latency_us"]
        assert set(latency) == {"p50", "p99", "p999", "max"}
        assert 0 <= latency["p50"] <= latency["p99"] <= latency["p999"] <= latency["max"], name
        if name != "/safety/stop":  # it may have sent everything between two snapshots
            assert topic["rate_hz"] > 0, name

    assert set(summary["nodes"]) == NODES
    for name, node in summary["nodes"].items():
        assert node["join_ms"] > 0 and node["rss_kb"] > 0 and node["cpu_percent"] >= 0, name
    assert {node["language"] for node in summary["nodes"].values()} == {"Python", "Rust", "C++"}

    recovery = summary["recovery"]
    assert recovery["down_s"] >= 1.5 and recovery["join_ms"] > 0
    assert recovery["recovery_ms"] >= recovery["join_ms"]
    assert recovery["stopped_ms"] > 0 and recovery["went_on_ms"] > 0
    states = [verdict["state"] for verdict in summary["verdicts"]]
    assert states.count(CLOSED) >= 2 and HELD in states and FALLEN not in states
    assert [s["active"] for s in summary["stops"] if s["reason"] == "ordered"] == [True, False]
    assert [s["active"] for s in summary["stops"]][:1] == [True]
    assert summary["stops"][0]["reason"] == "controller silent"
    assert summary["camera_source"] in ("synthetic", "mujoco-egl", "mujoco-osmesa")

    assert summary["accounting"]["unaccounted"] == 0
    assert summary["accounting"]["received"] > summary["accounting"]["sent"] > 0

    drawn = "".join(ElementTree.fromstring(picture.picture(summary)).itertext())
    assert all(name in drawn for name in TOPICS | NODES)
    for topic in TOPICS:
        assert topic in out  # in the tables, live and at the end


@pytest.mark.parametrize(
    "broken, reason",
    [
        ("controller", "the loop did not close"),  # joins without sending
        ("force", "force reports"),  # loses an uncounted message
        ("battery", "battery exited"),  # does not join
    ],
)
def test_detects_broken_node(broken, reason):
    code, out, err, summary = finish(start(DEMO_BREAK=broken))
    assert code == 1
    assert not summary["ok"] and any(reason in failure for failure in summary["failures"])
    assert "FAILED" in err and reason in err


def test_ctrl_c_leaves_nothing_behind():
    demo = start()
    for line in demo.stdout:
        if "all joined" in line:
            break
    assert len(processes_of(f"demo_{demo.pid}")) >= 10
    demo.send_signal(signal.SIGINT)
    assert finish(demo)[0] == 130


def test_a_killed_run_leaves_no_process_behind():
    demo = start(DEMO_SECONDS="60")
    for line in demo.stdout:
        if "all joined" in line:
            break
    demo.kill()
    demo.communicate()
    until = time.monotonic() + 30
    while left := processes_of(f"demo_{demo.pid}"):
        assert time.monotonic() < until, left
        time.sleep(0.05)  # sleep: between two reads of /proc
    Domain().remove_stale()
    assert not list(SHM.glob(f"rnet-*-demo_{demo.pid}"))


def test_rejects_invalid_number_of_hosts():
    code, out, err, _ = finish(start(DEMO_HOSTS="3"))
    assert code == 1 and "HOSTS" in err and out == ""


def test_rejects_invalid_seconds():
    code, out, err, _ = finish(start(DEMO_SECONDS="soon"))
    assert code == 1 and "DEMO_SECONDS" in err and out == ""


# --- counting -----------------------------------------------------------------------------------------------

BOOKS = {
    "publishers": [{"node": "/force", "topic": "/robot/force", "sent": 100, "gone": False}],
    "subscriptions": [
        {
            "node": "/logger",
            "topic": "/robot/force",
            "gone": False,
            "unserved": 0,
            "owed": 98,
            "received": 90,
            "skipped": 0,
            "queued": 2,
            "lost": {"overrun": 5, "link": 0, "restart": 0, "detached": 1},
        }
    ],
}
SENT = {"force": {"/robot/force": 100}}
TALLY = {"/robot/force": {"received": 90, "missing": 6, "disordered": 0}}


def changed(thing, *path, value):
    thing = copy.deepcopy(thing)
    inner = thing
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return thing


def test_accepts_counts_that_agree():
    assert accounting.check(BOOKS, SENT, TALLY) == []
    # The logger has received both queued messages meanwhile.
    assert accounting.check(BOOKS, SENT, changed(TALLY, "/robot/force", "received", value=92)) == []


@pytest.mark.parametrize("key", ["received", "skipped", "queued", "owed"])
def test_detects_counts_that_do_not_add_up(key):
    for by in (-1, 1):
        value = BOOKS["subscriptions"][0][key] + by
        problems = accounting.check(changed(BOOKS, "subscriptions", 0, key, value=value), SENT, TALLY)
        assert any("counted" in problem for problem in problems)


def test_ignores_unread_messages_of_dead_subscribers():
    books = changed(changed(BOOKS, "subscriptions", 0, "received", value=0), "subscriptions", 0, "gone", value=True)
    assert accounting.check(books, SENT, {}) == []


def test_detects_different_count_of_sender():
    problems = accounting.check(BOOKS, {"force": {"/robot/force": 101}}, TALLY)
    assert problems == ["force reports 101 messages sent on /robot/force, but rnet counted 100"]


@pytest.mark.parametrize("key, value", [("received", 89), ("received", 93), ("missing", 7), ("disordered", 1)])
def test_detects_different_count_of_logger(key, value):
    assert len(accounting.check(BOOKS, SENT, changed(TALLY, "/robot/force", key, value=value))) == 1


# --- judging ------------------------------------------------------------------------------------------------


def outage_record(*, before=CLOSED, outage=HELD, after=CLOSED, changes=((0, True), (10, False), (16, True))):
    """Windows of one state each: 2.5 s driven, 1.5 s dead, 2.5 s driven; times of `changes` in windows."""
    made = judge.OutageRecord()
    made.begin_ns, made.killed_ns, made.restarted_ns, made.end_ns = (n * WINDOW_NS for n in (0, 10, 16, 26))
    states = [before] * 10 + [outage] * 6 + [after] * 10
    made.verdicts = [{"at_ns": (n + 1) * WINDOW_NS, "state": state} for n, state in enumerate(states)]
    made.changes = [(n * WINDOW_NS + 1, driven) for n, driven in changes]
    made.clock = [(at_ns, at_ns) for at_ns, _ in made.changes]
    return made


@pytest.mark.parametrize("late_ms, is_late", [(judge.HOLD_DEADLINE_MS - 1, False), (judge.HOLD_DEADLINE_MS + 1, True)])
def test_detects_hold_after_deadline(late_ms, is_late):
    held_ns = 10 * WINDOW_NS + int(late_ms * 1e6)
    late = outage_record()
    late.deadline_ms = judge.HOLD_DEADLINE_MS
    late.changes[1] = (held_ns, False)
    late.clock = [(9 * WINDOW_NS, 9 * WINDOW_NS), (held_ns, held_ns)]
    assert any("the limit is" in failure for failure in late.failures()) == is_late
    # A simulation that was stopped in the meantime had no time to notice.
    late.clock[1] = (held_ns, held_ns - 5_000_000)
    assert not any("the limit is" in failure for failure in late.failures())


@pytest.mark.parametrize(
    "share, closed, is_enough",
    [(0, 1, False), (0, 2, True), (judge.MIN_CLOSED_SHARE, 4, False), (judge.MIN_CLOSED_SHARE, 5, True)],
)
def test_waits_for_a_closed_loop(share, closed, is_enough):
    late = outage_record(before="loop late")
    late.min_closed_share, late.restarted_ns = share, None
    for verdict in late.verdicts[:closed]:
        verdict["state"] = CLOSED
    late.verdicts = late.verdicts[:10]
    assert late.has_closed() == is_enough and not late.has_ended()
    # After the outage, only windows of the new controller count.
    late.restarted_ns, late.changes = 16 * WINDOW_NS, [(0, True), (10 * WINDOW_NS, False)]
    assert not late.has_closed()
    late.verdicts[-1]["state"] = FALLEN
    assert late.has_ended()


@pytest.mark.parametrize("state, fails", [(SETTLING, False), ("loop late", True), (HELD, True)])
def test_two_hosts_may_settle_but_not_be_late(state, fails):
    record = outage_record(before=state)
    record.min_closed_share, record.judges_settling = 0.25, False
    for verdict in record.verdicts[:2]:
        verdict["state"] = CLOSED
    assert any("did not close before" in failure for failure in record.failures()) == fails


@pytest.mark.parametrize("node, is_settled", [("/battery", True), ("/logger", False)])
def test_logger_leaves_no_message_when_counts_are_final(node, is_settled):
    books = changed(BOOKS, "subscriptions", 0, "node", value=node)
    books["subscriptions"][0].update(received=10, skipped=80)
    assert accounting.is_settled(books) == is_settled


def test_accepts_expected_outage():
    assert outage_record().failures() == []
    assert outage_record().held_after_ms() == pytest.approx(1e-6)
    assert outage_record().recovery_ms() == pytest.approx(1e-6)


@pytest.mark.parametrize(
    "wrong, reason",
    [
        ({"before": HELD}, "did not close before"),
        ({"after": HELD}, "did not close after"),
        ({"after": "loop late"}, "did not close after"),
        ({"outage": CLOSED}, "not held safely"),
        ({"outage": FALLEN}, "fell 2.8"),
        ({"outage": ABANDONED}, "neither driven nor held"),
        ({"changes": ((0, True),)}, "did not engage"),
        ({"changes": ((0, True), (10, False))}, "did not close again"),
    ],
)
def test_detects_failures_of_outage(wrong, reason):
    assert any(reason in failure for failure in outage_record(**wrong).failures())
