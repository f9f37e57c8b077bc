"""The time of a node: that of its host, or that of /clock."""

from __future__ import annotations

import queue
import signal
import sys
import time

import pytest
import rnet
from conftest import LIMIT_S
from rnet.msgs import Clock

S = 1_000_000_000
MS = 1_000_000


def clock_of(node):
    clock = node.publisher("/clock", Clock)
    clock.wait_for_subscribers(1, timeout=LIMIT_S)
    return clock


def set_time(clock, sim, time_ns):
    clock.send(Clock(time_ns=time_ns))
    until = time.monotonic() + LIMIT_S
    while sim.now() != time_ns:
        assert time.monotonic() < until, f"the time is {sim.now()} and not {time_ns}"
        time.sleep(0.0002)  # sleep: between two checks of a condition


def test_a_node_has_the_time_of_its_host(node):
    host = node()
    before, now, after = rnet.now_ns(), host.now(), rnet.now_ns()
    assert before <= now <= after and not host.sim_time
    host.close()
    with pytest.raises(rnet.ClosedError):
        host.now()


def test_the_wall_clock_is_where_the_offset_says():
    offset = rnet.wall_offset()
    before, unix, after = rnet.now_ns(), time.time_ns(), rnet.now_ns()
    slack = offset.uncertainty_ns + MS
    assert before + offset.offset_ns - slack <= unix <= after + offset.offset_ns + slack
    assert offset.uncertainty_ns > 0


def test_a_node_follows_the_clock(node):
    sim, host = node("sim", sim_time=True), node("host")
    assert sim.sim_time and sim.now() == 0
    clock = clock_of(host)
    for time_ns in (5 * S, 2 * S, 2**63 - 1, 0, 7 * S):
        set_time(clock, sim, time_ns)
    clock.send(Clock(time_ns=-1))
    set_time(clock, sim, 8 * S)


def test_timers_and_rates_run_in_simulated_time(node):
    sim, host = node("sim", sim_time=True), node("host")
    clock = clock_of(host)
    set_time(clock, sim, S)
    ticks: queue.Queue = queue.Queue()
    timer = sim.timer(0.01, ticks.put)
    rate = sim.rate(100)
    set_time(clock, sim, S + 9 * MS)
    with pytest.raises(queue.Empty):
        ticks.get(timeout=0.05)
    set_time(clock, sim, S + 10 * MS)
    assert ticks.get(timeout=LIMIT_S).due_ns == S + 10 * MS
    assert rate.sleep().due_ns == S + 10 * MS
    assert (timer.ticks, rate.overruns) == (1, 1)


def test_ctrl_c_ends_a_sleep_while_the_time_stands(node):
    rate = node("sim", sim_time=True).rate(1000)

    def end(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGUSR1, end)
    try:
        import threading

        main = threading.get_ident()
        threading.Timer(0.05, lambda: signal.pthread_kill(main, signal.SIGUSR1)).start()
        with pytest.raises(KeyboardInterrupt):
            rate.sleep()
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_a_rate_ends_with_its_simulated_clock(node):
    sim = node("sim", sim_time=True)
    rate = sim.rate(1000)
    sim.close()
    with pytest.raises(rnet.ClosedError):
        rate.sleep()


def test_a_node_closes_while_a_callback_sleeps_in_a_time_that_stands(node):
    sim, host = node("sim", sim_time=True), node("host")
    rate, told = sim.rate(1), queue.Queue()

    def sleep(_message):
        told.put("sleeps")
        try:
            rate.sleep()
        except rnet.ClosedError:
            told.put("closed")

    sim.subscriber("/go", on=sleep)
    go = host.publisher("/go")
    go.wait_for_subscribers(1, timeout=LIMIT_S)
    go.send(b"now")
    assert told.get(timeout=LIMIT_S) == "sleeps"
    sim.close()
    assert told.get(timeout=LIMIT_S) == "closed"


@pytest.mark.parametrize("end", ["", "del sim, host, go"])
def test_a_program_ends_while_a_callback_sleeps_in_a_time_that_stands(program, end):
    sleeper = program(f"""
import rnet, threading
sim, host = rnet.Node("sim", sim_time=True), rnet.Node("host")
rate, sleeps = sim.rate(1), threading.Event()
def sleep(message):
    sleeps.set()
    try:
        rate.sleep()
    except rnet.ClosedError:
        print("closed", flush=True)
sim.subscriber("/go", on=sleep)
go = host.publisher("/go")
go.wait_for_subscribers(1, timeout={LIMIT_S})
go.send(b"now")
sleeps.wait()
{end}
""")
    said, errors = sleeper.communicate(timeout=LIMIT_S)
    assert (sleeper.returncode, said, errors) == (0, "closed\n", "")


def test_a_player_that_is_killed_leaves_the_time_standing(node, program):
    sim = node("sim", sim_time=True)
    player = program("""
import rnet, sys
from rnet.msgs import Clock
clock = rnet.Node("player").publisher("/clock", Clock)
clock.wait_for_subscribers(1, timeout=20)
clock.send(Clock(time_ns=3))
sys.stdin.read()
""")
    until = time.monotonic() + LIMIT_S
    while sim.now() != 3:
        assert time.monotonic() < until
        time.sleep(0.001)  # sleep: between two checks of a condition
    player.kill()
    player.wait()
    assert sim.now() == 3
    set_next = clock_of(node("host"))
    while sim.now() != 4:
        assert time.monotonic() < until
        set_next.send(Clock(time_ns=4))
