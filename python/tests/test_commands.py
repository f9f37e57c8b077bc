"""Commands: one driver is in force, and what is safe is done when it is not heard."""

import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest

import rnet
from conftest import LIMIT_S, finish, settle
from rnet.msgs import Twist


@pytest.fixture
def base(node):
    """The node of receivers and drivers."""
    return node("base")


def eventually(condition):
    end = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.001)  # sleep: between two looks at a condition


class Wheels:
    """What was applied, in order."""

    def __init__(self):
        self.speeds = []

    def __call__(self, twist):
        self.speeds.append(twist.linear.x)

    def wait_for(self, speed):
        eventually(lambda: self.speeds[-1:] == [speed])


def twist(x):
    made = Twist()
    made.linear.x = x
    return made


def test_a_driver_is_obeyed_and_its_silence_ends_in_the_fallback(base):
    wheels = Wheels()
    with base.command("/cmd", Twist, wheels, deadline_ms=50, fallback=twist(-1)) as command:
        wheels.wait_for(-1)
        driver = base.drive("/cmd", Twist, priority=10, lease_ms=60_000)
        driver.send(twist(5))
        eventually(lambda: wheels.speeds == [-1, 5, -1])
        assert command.driver == base.name and not command.in_force and driver.in_force
        assert command.stats().applied == 1 and command.stats().fallbacks == 1
        driver.release()
        assert command.driver is None and not driver.in_force
        with pytest.raises(rnet.Closed):
            driver.send(twist(6))
    assert command.closed
    with pytest.raises(rnet.Closed):
        command.stats()


def test_a_higher_priority_takes_over(base):
    wheels = Wheels()
    command = base.command("/cmd", Twist, wheels, deadline_ms=600_000, fallback="zero")
    low = base.drive("/cmd", Twist, priority=1, lease_ms=600_000)
    low.send(twist(1))
    wheels.wait_for(1)
    with pytest.raises(rnet.NotInForce, match="priority 1") as refused:
        base.drive("/cmd", Twist)
    assert refused.value.topic == "/cmd" and base.name in refused.value.why
    with base.drive("/cmd", Twist, priority=2, lease_ms=600_000) as high:
        high.send(twist(2))
        wheels.wait_for(2)
        eventually(lambda: not low.in_force)
        with pytest.raises(rnet.NotInForce):
            low.send(twist(3))
        high.renew()
    wheels.wait_for(0)
    with pytest.raises(rnet.ReceiverExists, match=base.name):
        base.command("/cmd", Twist, wheels, fallback="hold")
    command.close()


def test_fallbacks(base):
    reasons, wheels = [], Wheels()
    command = base.command("/a", Twist, wheels, deadline_ms=50, fallback=reasons.append)
    eventually(lambda: reasons == ["opened"])
    with base.drive("/a", Twist) as driver:
        driver.send(twist(1))
        eventually(lambda: reasons == ["opened", "deadline"])
    command.close()
    with base.command("/b", Twist, wheels, deadline_ms=50, fallback="hold"):
        with base.drive("/b", Twist, lease_ms=60_000) as driver:
            driver.send(twist(7))
            eventually(lambda: wheels.speeds[-2:] == [7, 7])
    raw = []
    with base.command("/c", None, raw.append, deadline_ms=600_000, fallback=b"stop"):
        with base.drive("/c") as driver:
            driver.send(b"go")
            eventually(lambda: raw == [b"stop", b"go"])
    assert raw == [b"stop", b"go", b"stop"]


def test_what_makes_no_sense_is_refused_by_name(base):
    with pytest.raises(TypeError, match="fallback"):
        base.command("/cmd", Twist, print)
    with pytest.raises(rnet.BadValue, match="zero"):
        base.command("/cmd", Twist, print, fallback="stop")
    with pytest.raises(rnet.BadValue, match="deadline"):
        base.command("/cmd", Twist, print, fallback="hold", deadline_ms=0)
    with pytest.raises(rnet.BadValue):
        base.drive("/cmd", Twist, lease_ms=-1)
    with pytest.raises(rnet.BadValue, match="the highest is 2147483646"):
        base.drive("/cmd", Twist, priority=2**31 - 1, timeout=0.05)
    with pytest.raises(rnet.BadValue, match="priority: it is 2147483648, and must be -2147483648 to 2147483646"):
        base.drive("/cmd", Twist, priority=2**31, timeout=0.05)
    with pytest.raises(rnet.Timeout, match="after 50 ms: a receiver of /nobody"):
        base.drive("/nobody", Twist, timeout=0.05)


def test_functions_that_cannot_be_called_are_refused_before_anything_moves(base):
    async def later(_):
        pass

    for apply, fallback in [
        (lambda: None, "zero"),
        (print, lambda: None),
        (later, "zero"),
        (print, later),
        (lambda a, b: None, "zero"),
    ]:
        with pytest.raises(TypeError, match=r"does not take \((message|reason)\)|is async"):
            base.command("/cmd", Twist, apply, fallback=fallback)
    base.command("/cmd", Twist, lambda message, more=None: None, fallback=lambda *reasons: None).close()


@pytest.mark.parametrize("dtype", ["f8", np.dtype([("x", "f4"), ("n", "u2", (3,))])])
def test_the_zero_of_a_plain_type_is_all_zeros(base, dtype):
    applied = []
    with base.command("/cmd", dtype, applied.append, deadline_ms=600_000, fallback="zero"):
        eventually(lambda: len(applied) == 1)
    assert bytes(np.asarray(applied[0])) == bytes(np.dtype(dtype).itemsize)


def test_ctrl_c_ends_the_wait_for_a_receiver(program):
    waits = program("import rnet; rnet.Node('hand').drive('/nobody', 'f8', timeout=None)")
    settle(waits)
    waits.send_signal(signal.SIGINT)
    code, _, err = finish(waits)
    assert code != 0 and "KeyboardInterrupt" in err


def test_an_exception_is_followed_by_the_fallback(base, monkeypatch):
    shown, speeds = threading.Event(), []
    monkeypatch.setattr(sys, "unraisablehook", lambda _: shown.set())

    def apply(twist):
        speeds.append(twist.linear.x)
        if twist.linear.x == 13:
            raise RuntimeError("the wheel is stuck")

    with base.command("/cmd", Twist, apply, deadline_ms=600_000, fallback="zero") as command:
        with base.drive("/cmd", Twist, lease_ms=600_000) as driver:
            driver.send(twist(13))
            eventually(lambda: speeds == [0, 13, 0])
            assert shown.wait(LIMIT_S) and command.stats().panics == 1
            driver.send(twist(1))
            eventually(lambda: speeds[-1] == 1)


def test_a_driver_that_is_killed_is_followed_by_the_fallback(base):
    wheels = Wheels()
    with base.command("/cmd", Twist, wheels, deadline_ms=600_000, fallback=twist(-1)) as command:
        program = textwrap.dedent(
            """
            import time
            import rnet
            from rnet.msgs import Twist

            driver = rnet.Node("killed").drive("/cmd", Twist, lease_ms=600_000)
            while True:
                driver.send(Twist())
                time.sleep(0.01)  # sleep: the period of the commands
            """
        )
        child = subprocess.Popen([sys.executable, "-c", program])
        try:
            eventually(lambda: command.in_force)
            assert command.driver == "/killed"
        finally:
            child.kill()
            child.wait()
        wheels.wait_for(-1)
        eventually(lambda: command.driver is None)
