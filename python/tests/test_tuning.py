"""The scheduler settings that waiting changes in a thread, and how to turn that off."""

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


def slices_of_waiting(node: rnet.Node, shortened: bool, slices: list[int]) -> None:
    """The slices of this thread after each of its waits, until one is short if it is to be shortened, and in the end
    that after its subscriber was closed."""
    subscriber = node.subscriber("/t")
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and (BULK_NS not in slices if shortened else len(slices) < 5):
        with pytest.raises(rnet.WaitTimeoutError):
            subscriber.recv(timeout=0.005)
        slices.append(slice_ns(0))
    subscriber.close()
    slices.append(slice_ns(0))


@pytest.mark.skipif(SCHED_GETATTR is None, reason="the number of the call is not known here")
@pytest.mark.parametrize("tuned", [True, False])
def test_a_thread_that_waits_has_a_short_slice_if_it_may(tuned: bool) -> None:
    before = slice_ns(0)
    if before <= BULK_NS:
        pytest.skip("this needs Linux 6.12 and a process whose slice nobody has chosen")
    # A thread with a nice value is not changed.
    shortened = tuned and os.nice(0) == 0
    slices: list[int] = []
    with rnet.Node("reader", tune_threads=tuned) as node, rnet.Node("other") as other:
        # After a match, the node has the kernel's defaults for threads.
        defaults = node.subscriber("/defaults")
        other.publisher("/defaults").wait_for_subscribers(timeout=30)
        thread = threading.Thread(target=slices_of_waiting, args=(node, shortened, slices))
        thread.start()
        thread.join()
        defaults.close()
    assert set(slices) == ({before, BULK_NS} if shortened else {before})
    assert slices[-1] == before
