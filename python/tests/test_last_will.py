"""The last will of a publisher, which its subscribers receive when its process has died."""

from __future__ import annotations

import queue

import pytest
import rnet
from conftest import LIMIT_S
from rnet.msgs import Imu

VICTIM = """
import os, signal, sys, rnet
from rnet.msgs import Imu
node = rnet.Node("victim")
raw = node.publisher("/t", last_will=b"first")
typed = node.publisher("/imu", Imu, last_will=Imu(frame_id="gone"))
for one in (raw, typed):
    one.wait_for_subscribers(1)
raw.send(b"message")
raw.set_last_will(b"second")
{end}
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_killed_process_leaves_its_wills(node, program):
    home = node()
    raw, typed = home.subscriber("/t"), home.subscriber("/imu", Imu)
    told: queue.Queue = queue.Queue()
    home.subscriber("/t", on=lambda sample: told.put((bytes(sample), sample.last_will)))
    program(VICTIM.format(end=""))
    message = raw.recv(timeout=LIMIT_S)
    will = raw.recv(timeout=LIMIT_S)
    assert (bytes(message), message.last_will) == (b"message", False)
    assert (bytes(will), will.last_will, will.seq) == (b"second", True, 1)
    with pytest.raises(rnet.PeerLostError):
        raw.recv(timeout=LIMIT_S)
    sample = typed.recv_sample(timeout=LIMIT_S)
    assert (sample.value, sample.last_will) == (Imu(frame_id="gone"), True)
    heard = told.get(timeout=LIMIT_S)
    while not heard[1]:
        heard = told.get(timeout=LIMIT_S)
    assert heard == (b"second", True)


@pytest.mark.parametrize("end", ["raw.close(), typed.close()", "node.close()", "raw.set_last_will(None); typed.set_last_will(None)"])
def test_what_was_closed_or_taken_back_is_no_will(node, program, end):
    home = node()
    raw, typed = home.subscriber("/t"), home.subscriber("/imu", Imu)
    program(VICTIM.format(end=end)).wait(LIMIT_S)
    assert bytes(raw.recv(timeout=LIMIT_S)) == b"message"
    for subscriber in (raw, typed):
        with pytest.raises((rnet.PeerLostError, rnet.WaitTimeoutError)):
            subscriber.recv(timeout=0.2)


def test_an_exception_closes_the_node(node, program):
    raw, _typed = node().subscriber("/t"), node("other").subscriber("/imu")
    program(VICTIM.format(end="raise SystemExit(3)")).wait(LIMIT_S)
    assert bytes(raw.recv(timeout=LIMIT_S)) == b"message"
    with pytest.raises(rnet.WaitTimeoutError):
        raw.recv(timeout=0.2)


def test_what_is_no_will_is_refused(node):
    home = node()
    with pytest.raises(rnet.errors.BadValueError, match="last will on /t: it has 4097 bytes; a last will has at most 4096"):
        home.publisher("/t", last_will=bytes(4097))
    with pytest.raises(TypeError, match="Imu"):
        home.publisher("/imu", Imu, last_will=b"bytes")
    without = home.publisher("/t")
    with pytest.raises(rnet.errors.BadValueError, match="opened without a last will"):
        without.set_last_will(b"late")
    publisher = home.publisher("/u", last_will=b"")
    publisher.set_last_will(bytes(4096))
    with pytest.raises(rnet.errors.BadValueError, match="last will on /u: it has 4097 bytes"):
        publisher.set_last_will(bytes(4097))
    publisher.close()
    with pytest.raises(rnet.ClosedError):
        publisher.set_last_will(None)
