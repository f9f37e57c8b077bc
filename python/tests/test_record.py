"""Recording from Python, with the program `rnet` of this checkout."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import pytest
import rnet
from conftest import LIMIT_S
from rnet.msgs import Imu

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target") / "debug"
MAGIC = b"\x89MCAP0\r\n"


@pytest.fixture(autouse=True)
def program(monkeypatch: pytest.MonkeyPatch) -> None:
    """`rnet` is the one of this checkout."""
    monkeypatch.setenv("PATH", f"{BUILD}:{os.environ['PATH']}")


def until(holds) -> None:
    end = time.monotonic() + LIMIT_S
    while not holds():
        assert time.monotonic() < end, "it does not come"
        time.sleep(0.01)  # sleep: between two checks of a condition


def test_a_block_records_what_it_sends(tmp_path):
    file = tmp_path / "run.mcap"
    with rnet.Node("/n") as node:
        wanted, other = node.publisher("/wanted", bytes), node.publisher("/other", bytes)
        with rnet.record(file, "/wanted", compress="none", state=False) as recording:
            for n in range(10):
                wanted.send(b"message %d" % n)
                other.send(b"other")
    report = recording.report
    assert (report.messages, report.missing, report.losses, report.files) == (10, 0, {}, [file])
    assert (report.followed, report.unheard) == (1, {})
    data = file.read_bytes()
    assert data.startswith(MAGIC) and data.endswith(MAGIC)
    assert all(b"message %d" % n in data for n in range(10)) and b"other" not in data
    assert recording.is_over and "10 messages, 0 missing of 1 publishers followed" in repr(recording)
    assert recording.stop() == report


def test_a_topic_that_nobody_published_is_said(tmp_path, caplog):
    report = rnet.record(tmp_path / "run.mcap", "/scan", state=False, duration=0.1).wait(timeout=LIMIT_S)
    assert (report.messages, report.followed, report.unheard) == (0, 0, {})
    assert "no publisher was followed: none of /scan was found" in caplog.text


def test_it_is_entered_once_and_leaves_nothing_open(tmp_path):
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        recording = rnet.record(tmp_path / "run.mcap", state=False)
        with recording:
            pass
        with pytest.raises(rnet.ClosedError, match=r"run\.mcap was already used in a with block"), recording:
            pass
        with pytest.raises(rnet.errors.RecordFailedError, match="already exists"):
            rnet.record(tmp_path / "run.mcap")
        with rnet.open_recording(tmp_path / "run.mcap") as file:
            assert list(file.messages()) == []
        with pytest.raises(rnet.ClosedError, match=r"run\.mcap is closed; open it again"), file:
            pass
        del recording, file
        gc.collect()
    assert [str(one.message) for one in warned if one.category is ResourceWarning] == []


def test_a_file_for_ros_2_has_what_ros_2_has_and_counts_the_rest(tmp_path):
    file = tmp_path / "run.mcap"
    with rnet.Node("/n") as node:
        imu, other = node.publisher("/imu", Imu), node.publisher("/other", bytes)
        with rnet.record(file, "/imu", "/other", ros2=True) as recording:
            imu.send(Imu(frame_id="imu"))
            other.send(b"bytes")
    assert recording.report.losses == {("/other", "/n", "no_counterpart"): 1}
    with rnet.open_recording(file) as read:
        assert (read.profile, read.topics) == ("ros2", ["/imu"])
        assert read["/imu"].types == ["sensor_msgs/msg/Imu"]
    with pytest.raises(rnet.errors.RecordFailedError, match="--raw"):
        rnet.record(tmp_path / "other.mcap", ros2=True, raw=True)


def test_it_ends_after_its_time_and_says_what_is_wrong(tmp_path):
    file = tmp_path / "run.mcap"
    report = rnet.record(file, duration=0.1).wait(timeout=LIMIT_S)
    assert report.files == [file] and report.seconds >= 0.1
    with pytest.raises(rnet.errors.RecordFailedError, match="already exists"):
        rnet.record(file)
    with pytest.raises(rnet.errors.RecordFailedError, match="whole parts"):
        rnet.record(tmp_path / "other.mcap", "/a*b")
    with rnet.record(tmp_path / "other.mcap") as recording, pytest.raises(rnet.WaitTimeoutError):
        recording.wait(timeout=0.01)


def test_it_ends_the_file_when_python_is_killed(tmp_path):
    file = tmp_path / "run.mcap"
    script = "import rnet, sys; r = rnet.record(sys.argv[1]); print('records', flush=True); sys.stdin.read()"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", script, file], **pipes) as python:
        assert python.stdout is not None and python.stdout.readline() == b"records\n"
        python.send_signal(signal.SIGKILL)
    until(lambda: file.read_bytes().endswith(MAGIC) and file.stat().st_size > 100)
