"""What waiting changes of the thread that waits, and how it is turned off."""

import ctypes
import os
import threading
import time

import pytest

import rnet

SCHED_GETATTR = {"x86_64": 315, "aarch64": 275}.get(os.uname().machine)
BULK_NS = 200_000


def slice_ns(thread: int) -> int:
    """The time slice of a thread, 0 where the kernel has none (before Linux 6.12)."""
    attributes = (ctypes.c_uint64 * 6)()
    libc = ctypes.CDLL(None, use_errno=True)
    got = libc.syscall(SCHED_GETATTR, thread, ctypes.byref(attributes), 48, 0)
    assert got == 0, os.strerror(ctypes.get_errno())
    return int(attributes[3])


def receive_until(node: rnet.Node, stop: threading.Event, ids: list[int]) -> None:
    subscriber = node.subscribe("/t")
    ids.append(threading.get_native_id())
    while not stop.is_set():
        with pytest.raises(rnet.Timeout):
            subscriber.recv(timeout=0.005)
    subscriber.close()
    ids.append(slice_ns(0))


@pytest.mark.skipif(SCHED_GETATTR is None, reason="the number of the call is not known here")
@pytest.mark.parametrize("tuned", [True, False])
def test_a_thread_that_waits_has_a_short_slice_if_it_may(tuned: bool) -> None:
    if slice_ns(0) <= BULK_NS:
        pytest.skip("this needs Linux 6.12 and a process whose slice nobody has chosen")
    before = slice_ns(0)
    stop = threading.Event()
    ids: list[int] = []
    with rnet.Node("reader", tune_threads=tuned) as node:
        thread = threading.Thread(target=receive_until, args=(node, stop, ids))
        thread.start()
        seen: set[int] = set()
        deadline = time.monotonic() + (30 if tuned else 0.2)
        while time.monotonic() < deadline and BULK_NS not in seen:
            if ids:
                seen.add(slice_ns(ids[0]))
        stop.set()
        thread.join()
    assert (BULK_NS in seen) == tuned
    assert ids[1] == before
