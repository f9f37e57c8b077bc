"""Durable values."""

from __future__ import annotations

import os
import shutil
import signal
import threading

import pytest
import rnet
from conftest import LIMIT_S, settle


def test_durable_values_outlive_the_domain(domain):
    with rnet.Node("before") as node:
        state = node.state
        state.set("/count", 1, durable=True)
        # It stays durable after every kind of write.
        state["/count"] = 2
        assert state.add("/count") == 3 and state.update("/count", lambda n: n + 1) == 4
        state.set("/plan", {"speed": 0.5}, durable=True)
        state.set("/joint", rnet.msgs.Pose(position={"x": 1.0}), durable=True)
        state["/fleeting"] = 1
        assert state.entry("/count").durable and not state.entry("/fleeting").durable
        with state.transaction() as t:
            t.set("/a", 1, durable=True)
            t["/count"] = 5
    # As after a reboot: shared memory is empty.
    shutil.rmtree(domain)
    with rnet.Node("after") as node:
        state = node.state
        assert dict(state.snapshot("/count")) == {"/count": 5} and state["/plan"] == {"speed": 0.5}
        assert state["/joint"].position.x == 1.0 and state["/a"] == 1 and "/fleeting" not in state
        entry = state.entry("/count")
        assert entry.durable and entry.owner == "/before"
        state.set("/count", 6, durable=False)
        del state["/plan"]
    shutil.rmtree(domain)
    with rnet.Node("at_last") as node:
        assert list(node.state) == ["/a", "/joint"]


def test_what_was_acknowledged_outlives_a_kill(domain, program):
    process = program(
        """
import rnet
state = rnet.Node("victim").state
for n in range(1_000_000):
    state.set("/n", n, durable=True)
    print(n, flush=True)
"""
    )
    told = [process.stdout.readline() for _ in range(20)]
    process.send_signal(signal.SIGKILL)
    # Through the buffer that `readline` has filled: `communicate` bypasses it.
    rest = process.stdout.read()
    process.wait(timeout=LIMIT_S)
    acknowledged = [int(line) for line in told + rest.splitlines() if line.strip()]
    shutil.rmtree(domain)
    with rnet.Node("after") as node:
        assert node.state["/n"] in (acknowledged[-1], acknowledged[-1] + 1)


def test_a_disk_that_cannot_be_written_is_an_error(domain, monkeypatch, tmp_path):
    # Below a file, where even root cannot create a folder.
    (tmp_path / "file").touch()
    monkeypatch.setenv("RNET_STATE_DIR", str(tmp_path / "file" / "keep"))
    with rnet.Node("node") as node:
        node.state["/k"] = 1
        with pytest.raises(rnet.errors.StorageError) as caught:
            node.state.set("/k", 2, durable=True)
        assert isinstance(caught.value, OSError) and str(tmp_path) in caught.value.path
        assert node.state["/k"] == 1


def test_state_dir_is_where_durable_values_are_kept(domain, tmp_path):
    with rnet.Node("before", state_dir=tmp_path / "keep") as node:
        node.state.set("/k", 1, durable=True)
    assert list((tmp_path / "keep").glob("*/state-*.redb"))
    shutil.rmtree(domain)
    with rnet.Node("after", state_dir=str(tmp_path / "keep")) as node:
        assert node.state["/k"] == 1


PERSISTER = """
import rnet, signal
state = rnet.Node("persister").state
state.set("/kept", 1, durable=True)
print("keeps", flush=True)
signal.pause()
"""


def test_ctrl_c_ends_a_write_that_waits_for_the_disk(domain, program):
    persister = program(PERSISTER)
    assert persister.stdout.readline() == "keeps\n"
    with rnet.Node("writer") as node:
        state = node.state
        state["/memory"] = 1
        # Disk requests wait until another process replaces the stopped persister.
        persister.send_signal(signal.SIGSTOP)
        settle(persister, "T")
        begun = threading.Event()

        def interrupt():
            # Runs while the write waits, because the write does not hold the GIL.
            begun.wait()
            os.kill(os.getpid(), signal.SIGINT)

        thread = threading.Thread(target=interrupt)
        thread.start()
        try:
            with pytest.raises(KeyboardInterrupt):
                begun.set()
                state.set("/memory", 2, durable=True)
                pytest.fail("the write was not interrupted")
        finally:
            thread.join()
            persister.send_signal(signal.SIGCONT)
        # The disk write had not begun, so it was withdrawn.
        assert state["/memory"] == 1 and not state.entry("/memory").durable
        # The next write succeeds.
        state.set("/memory", 3, durable=True)
        assert state.entry("/memory").durable
