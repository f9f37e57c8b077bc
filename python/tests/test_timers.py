"""Timers on the dispatch threads, and loops with a rate."""

from __future__ import annotations

import queue
import signal
import sys
import threading
import time

import pytest
import rnet
from conftest import LIMIT_S


def test_a_timer_ticks_at_multiples_of_its_period(node):
    ticks: queue.Queue = queue.Queue()
    timer = node().timer(0.002, ticks.put)
    got = [ticks.get(timeout=LIMIT_S) for _ in range(20)]
    start_ns = got[0].due_ns - got[0].number * 2_000_000
    before = 0
    for tick in got:
        assert tick.due_ns == start_ns + tick.number * 2_000_000
        assert tick.number == before + 1 + tick.missed
        assert tick.late_s >= 0.0
        before = tick.number
    assert timer.ticks >= 20 and timer.period == 0.002 and not timer.cancelled


def test_a_timer_lives_as_long_as_the_node_and_ends_with_it(node):
    ticks: queue.Queue = queue.Queue()
    robot = node()
    robot.timer(0.001, ticks.put)  # The returned object is not kept.
    for _ in range(3):
        ticks.get(timeout=LIMIT_S)
    robot.close()
    while not ticks.empty():
        ticks.get()
    with pytest.raises(queue.Empty):
        ticks.get(timeout=0.05)
    with pytest.raises(rnet.ClosedError):
        robot.timer(0.001, ticks.put)


def test_a_callback_cancels_its_own_timer(node):
    done = threading.Event()
    timers = []

    def tick(tick):
        if timers:
            timers[0].cancel()
            done.set()

    timers.append(node().timer(0.001, tick))
    assert done.wait(LIMIT_S)
    assert timers[0].cancelled
    ticks = timers[0].ticks
    time.sleep(0.02)  # sleep: nothing must happen
    assert timers[0].ticks == ticks


def test_a_callback_closes_its_own_node(node):
    robot = node()
    done = threading.Event()

    def close(tick):
        robot.close()
        done.set()

    robot.timer(0.001, close, once=True)
    assert done.wait(LIMIT_S)
    assert robot.closed


def test_a_timer_that_comes_once(node):
    ticks: queue.Queue = queue.Queue()
    robot = node()
    timer = robot.timer(0.0, ticks.put, once=True, urgent=True)
    assert ticks.get(timeout=LIMIT_S).number == 1
    with pytest.raises(queue.Empty):
        ticks.get(timeout=0.02)
    assert timer.ticks == 1
    with robot.timer(3600, ticks.put) as other:
        pass
    assert other.cancelled


def test_what_a_callback_raises_goes_to_the_hook_and_the_next_tick_to_the_callback(node, monkeypatch):
    told: queue.Queue = queue.Queue()
    monkeypatch.setattr(sys, "unraisablehook", lambda args: told.put(args.exc_value))

    def fail(tick):
        raise ValueError("no")

    with node().timer(0.001, fail):
        assert [type(told.get(timeout=LIMIT_S)) for _ in range(3)] == [ValueError] * 3


def test_missed_ticks_are_counted(node):
    ticks: queue.Queue = queue.Queue()

    def slow(tick):
        ticks.put(tick)
        time.sleep(0.01)  # sleep: the callback takes longer than the period

    with node().timer(0.001, slow) as timer:
        ticks.get(timeout=LIMIT_S)
        assert ticks.get(timeout=LIMIT_S).missed >= 8
        assert timer.missed >= 8


def test_what_is_no_period_or_no_function_is_refused(node):
    robot = node()
    for period in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(rnet.errors.BadValueError):
            robot.timer(period, print)
    with pytest.raises(TypeError):
        robot.timer(1.0, None)
    for hz in (0, -5, float("nan")):
        with pytest.raises(rnet.errors.BadValueError):
            rnet.Rate(hz)


def test_a_rate_is_a_loop_with_a_period():
    rate = rnet.Rate(500)
    assert rate.period == 0.002
    numbers = []
    for tick in rate:
        numbers.append(tick.number)
        if len(numbers) == 10:
            break
    assert numbers == sorted(set(numbers))
    time.sleep(0.011)  # sleep: the loop takes longer than its period
    late = rate.sleep()
    assert late.missed >= 4 and rate.missed >= 4 and rate.overruns >= 1


def test_a_signal_ends_the_sleep_of_a_rate():
    rate = rnet.Rate(0.001)
    began = threading.Event()

    def interrupt():
        began.wait(LIMIT_S)
        time.sleep(0.05)  # sleep: so that the main thread usually sleeps
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        began.set()
        rate.sleep()
    thread.join()
    assert (rate.overruns, rate.missed) == (0, 0)
