"""Commands: one driver has authority, and the receiver falls back if its commands stop."""

import mmap
import os
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
from rnet.msgs import CommandStatus, Twist


@pytest.fixture
def base(node):
    """The node of receivers and drivers."""
    return node("base")


def eventually(condition):
    end = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.001)  # sleep: between two checks of a condition


class Wheels:
    """The applied commands, in order."""

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
    with base.command("/cmd", Twist, wheels, deadline=0.05, fallback=twist(-1)) as command:
        wheels.wait_for(-1)
        driver = base.drive("/cmd", Twist, priority=10, lease=60)
        driver.send(twist(5))
        eventually(lambda: wheels.speeds == [-1, 5, -1])
        assert command.driver == base.name and not command.in_force and driver.in_force
        assert command.stats().applied == 1 and command.stats().fallbacks == 1
        driver.release()
        assert command.driver is None and not driver.in_force
        with pytest.raises(rnet.ClosedError):
            driver.send(twist(6))
    assert command.closed
    with pytest.raises(rnet.ClosedError):
        command.stats()


def test_a_higher_priority_takes_over(base):
    wheels = Wheels()
    command = base.command("/cmd", Twist, wheels, deadline=600, fallback="zero")
    low = base.drive("/cmd", Twist, priority=1, lease=600)
    low.send(twist(1))
    wheels.wait_for(1)
    with pytest.raises(rnet.errors.NotInForceError, match="priority 1") as refused:
        base.drive("/cmd", Twist)
    assert refused.value.topic == "/cmd" and base.name in refused.value.why
    assert "retake" not in str(refused.value), "no driver exists yet"
    with base.drive("/cmd", Twist, priority=2, lease=600) as high:
        high.send(twist(2))
        wheels.wait_for(2)
        eventually(lambda: not low.in_force)
        with pytest.raises(rnet.errors.NotInForceError):
            low.send(twist(3))
        high.renew()
    wheels.wait_for(0)
    with pytest.raises(rnet.errors.ReceiverExistsError, match=base.name):
        base.command("/cmd", Twist, wheels, fallback="hold")
    command.close()


def test_fallbacks(base):
    reasons, wheels = [], Wheels()
    command = base.command("/a", Twist, wheels, deadline=0.05, fallback=reasons.append)
    eventually(lambda: reasons == ["opened"])
    with base.drive("/a", Twist) as driver:
        driver.send(twist(1))
        eventually(lambda: reasons == ["opened", "deadline"])
    command.close()
    with base.command("/b", Twist, wheels, deadline=0.05, fallback="hold"):
        with base.drive("/b", Twist, lease=60) as driver:
            driver.send(twist(7))
            eventually(lambda: wheels.speeds[-2:] == [7, 7])
    raw = []
    with base.command("/c", None, raw.append, deadline=600, fallback=b"stop"):
        with base.drive("/c") as driver:
            driver.send(b"go")
            eventually(lambda: raw == [b"stop", b"go"])
    assert raw == [b"stop", b"go", b"stop"]


def test_what_makes_no_sense_is_refused_by_name(base):
    with pytest.raises(TypeError, match="fallback"):
        base.command("/cmd", Twist, print)
    with pytest.raises(rnet.errors.BadValueError, match="zero"):
        base.command("/cmd", Twist, print, fallback="stop")
    with pytest.raises(rnet.errors.BadValueError, match="deadline"):
        base.command("/cmd", Twist, print, fallback="hold", deadline=0)
    with pytest.raises(rnet.errors.BadValueError):
        base.drive("/cmd", Twist, lease=-0.001)
    with pytest.raises(rnet.errors.BadValueError, match="the highest is 2147483646"):
        base.drive("/cmd", Twist, priority=2**31 - 1, timeout=0.05)
    with pytest.raises(rnet.errors.BadValueError, match="priority: it is 2147483648, and must be -2147483648 to 2147483646"):
        base.drive("/cmd", Twist, priority=2**31, timeout=0.05)
    with pytest.raises(rnet.WaitTimeoutError, match="after 50 ms waiting for a receiver of /nobody"):
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
    with base.command("/cmd", dtype, applied.append, deadline=600, fallback="zero"):
        eventually(lambda: len(applied) == 1)
    assert bytes(np.asarray(applied[0])) == bytes(np.dtype(dtype).itemsize)


def test_ctrl_c_ends_the_wait_for_a_receiver(program):
    waits = program("import rnet; rnet.Node('hand').drive('/nobody', 'f8', timeout=float('inf'))")
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

    with base.command("/cmd", Twist, apply, deadline=600, fallback="zero") as command:
        with base.drive("/cmd", Twist, lease=600) as driver:
            driver.send(twist(13))
            eventually(lambda: speeds == [0, 13, 0])
            assert shown.wait(LIMIT_S) and command.stats().panics == 1
            driver.send(twist(1))
            eventually(lambda: speeds[-1] == 1)


@pytest.fixture
def child(base):
    """Starts a Python program in the domain of `base`; it is killed at the end of the test."""
    started = []

    def start(source, *arguments):
        command = [sys.executable, "-c", textwrap.dedent(source), *arguments]
        started.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait()
        process.stdout.close()


def test_a_command_that_waited_for_the_interpreter_past_its_deadline_is_not_applied(base, child, tmp_path):
    wheels, reasons = Wheels(), []
    said = tmp_path / "said"
    said.write_bytes(bytes(mmap.PAGESIZE))
    with open(said, "r+b") as file, mmap.mmap(file.fileno(), 0) as shared:
        with base.command("/cmd", Twist, wheels, deadline=0.2, fallback=reasons.append) as command:
            child(
                """
                import mmap, os, signal, sys, time
                import rnet
                from rnet.msgs import Twist

                file = open(sys.argv[1], "r+b")
                shared = mmap.mmap(file.fileno(), 0)
                driver = rnet.Node("driver").drive("/cmd", Twist, lease=60, timeout=60)
                while not shared[0]:
                    driver.send(Twist(linear={"x": 1}))
                    time.sleep(0.01)  # sleep: the period of the commands
                driver.send(Twist(linear={"x": 2}))
                shared[1] = 1
                os.kill(os.getpid(), signal.SIGKILL)
                """,
                os.fspath(said),
            )
            wheels.wait_for(1)
            interval = sys.getswitchinterval()
            # No other thread gets the GIL before this one waits.
            sys.setswitchinterval(1000)
            try:
                shared[0] = 1
                while not shared[1]:
                    pass
                end = time.monotonic() + 0.4
                while time.monotonic() < end:
                    pass
            finally:
                sys.setswitchinterval(interval)
            eventually(lambda: command.driver is None)
            stats = command.stats()
    assert 2 not in wheels.speeds and len(reasons) > 1
    assert stats.late + stats.superseded > 0


def test_authority_that_passes_to_another_driver_brings_the_fallback_at_once(base):
    wheels, reasons = Wheels(), []
    with base.command("/cmd", Twist, wheels, deadline=600, fallback=reasons.append):
        with base.drive("/cmd", Twist, priority=1, lease=600) as driver:
            driver.send(twist(1))
            wheels.wait_for(1)
            with base.drive("/cmd", Twist, priority=2, lease=600):
                assert reasons == ["opened", "preempted"]


def test_commands_are_forwarded_to_a_topic(base):
    speeds = []
    with base.command("/cmd", Twist, forward="/wheels", deadline=600, fallback=twist(-1)) as command:
        base.subscriber("/wheels", Twist, on=lambda message: speeds.append(message.linear.x), transient_local=True)
        eventually(lambda: speeds == [-1])
        with base.drive("/cmd", Twist, lease=600) as driver:
            driver.send(twist(1))
            eventually(lambda: speeds == [-1, 1])
        eventually(lambda: speeds == [-1, 1, -1])
        assert command.stats().applied == 1
    for wrong in [{}, {"forward": "/wheels", "apply": print}]:
        with pytest.raises(TypeError, match="either apply \\(a function\\) or forward \\(a topic\\)"):
            base.command("/cmd", Twist, fallback="zero", **wrong)
    with pytest.raises(rnet.errors.BadValueError, match="cannot be published"):
        base.command("/cmd", Twist, forward="/wheels", fallback=lambda reason: None)


def test_a_fallback_that_cannot_work_is_refused_before_anything_moves(base):
    def fails(_):
        raise RuntimeError("the wheel is stuck")

    for fallback, why in [
        (Twist, r"is the class Twist: pass a message of the type.*such as Twist\(\)"),
        (dict, "is the class dict"),
        (int, "is the class int"),
        (5, "pass a message of the type"),
        (fails, "failed when the receiver was opened: RuntimeError: the wheel is stuck"),
    ]:
        with pytest.raises(TypeError, match=why):
            base.command("/cmd", Twist, print, fallback=fallback)
    with pytest.raises(TypeError, match="the wheel is stuck") as refused:
        base.command("/cmd", Twist, fails, fallback="zero")
    assert isinstance(refused.value.__cause__, RuntimeError)
    with pytest.raises(TypeError, match="is a class"):
        base.command("/cmd", Twist, Wheels, fallback="zero")
    base.command("/cmd", Twist, print, fallback="zero").close()


def test_a_driver_takes_its_authority_again(base, node):
    wheels, other = Wheels(), node("other")
    with base.command("/cmd", Twist, wheels, deadline=600, fallback="zero") as command:
        with base.drive("/cmd", Twist, priority=1, lease=600) as driver:
            driver.retake()
            high = other.drive("/cmd", Twist, priority=2, lease=600)
            eventually(lambda: not driver.in_force)
            with pytest.raises(rnet.errors.NotInForceError, match="retake"):
                driver.retake()
            high.release()
            driver.retake(timeout=LIMIT_S)
            driver.send(twist(1))
            wheels.wait_for(1)
        with base.drive("/cmd", Twist, priority=1, lease=0.05, auto_retake=True) as driver:
            eventually(lambda: command.driver is None)

            def drives():
                try:
                    driver.send(twist(2))
                except rnet.errors.NotInForceError:
                    return False
                return True

            eventually(lambda: drives() and wheels.speeds[-1:] == [2])


def test_a_receiver_whose_process_is_stopped_is_reported_at_once(base, child):
    receiver = child(
        """
        import time
        import rnet

        command = rnet.Node("receiver").command("/cmd", None, lambda _: None, fallback="hold")
        print("receives", flush=True)
        time.sleep(600)  # sleep: the test ends this process
        """
    )
    assert receiver.stdout.readline() == "receives\n"
    driver = base.drive("/cmd", lease=600)
    receiver.send_signal(signal.SIGSTOP)
    with pytest.raises(rnet.errors.NotInForceError, match="receiver /receiver is stopped"):
        base.drive("/cmd", priority=1, timeout=float("inf"))
    with pytest.raises(rnet.errors.NotInForceError, match="receiver /receiver is stopped"):
        driver.release()
    driver.release()
    receiver.send_signal(signal.SIGCONT)


ENDS_A_RETAKE = {
    "release": "thread.start(); settle(); driver.release()",
    "node.close": "thread.start(); settle(); hand.close()",
    "close in a signal handler": "signal.signal(signal.SIGUSR1, lambda *_: driver.close()); "
    "threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGUSR1)).start(); again()",
}


@pytest.mark.parametrize("end", ENDS_A_RETAKE)
def test_a_retake_without_an_end_is_ended_by_who_closes_the_driver(program, end):
    process = program(
        textwrap.dedent(
            """
            import math, os, signal, sys, threading, time
            import rnet

            base, hand = rnet.Node("base"), rnet.Node("hand")
            command = base.command("/cmd", None, lambda _: None, fallback="hold", deadline=0.1)
            driver = hand.drive("/cmd", lease=0.2, timeout=60)
            command.close()
            while driver.in_force:
                time.sleep(0.001)  # sleep: between two checks of a condition

            def again():
                try:
                    driver.retake(timeout=math.inf)
                except rnet.ClosedError:
                    print("closed")

            def settle():
                time.sleep(0.3)  # sleep: until the thread is in retake, which cannot be observed

            thread = threading.Thread(target=again)
            exec(sys.argv[1])
            if thread.ident:
                thread.join()
            """
        ),
        ENDS_A_RETAKE[end],
    )
    assert finish(process) == (0, "closed\n", "")


def test_a_command_at_a_receiver_whose_program_is_ending_has_failed(base, program):
    statuses = base.subscriber("/_rnet/command/cmd/status", CommandStatus, transient_local=True, keep_all=True)
    receiver = program(
        textwrap.dedent(
            """
            import atexit, sys

            def wait():
                print("ends", flush=True)
                sys.stdin.readline()

            # Registered before rnet, so it runs last.
            atexit.register(wait)
            import threading
            import rnet

            node, begun = rnet.Node("receiver"), threading.Event()

            def hangs(_):
                begun.set()
                threading.Event().wait()

            # The close of the node waits for this handler before it closes the receiver.
            service = node.service("/hangs", None, None, hangs)
            call = node.client("/hangs").start(b"")
            begun.wait()
            command = node.command("/cmd", None, lambda _: None, fallback=lambda _: None, deadline=600)
            print("receives", flush=True)
            sys.stdin.readline()
            """
        )
    )
    assert receiver.stdout.readline() == "receives\n"
    driver = base.drive("/cmd", lease=600, timeout=LIMIT_S)
    receiver.stdin.write("\n")
    receiver.stdin.flush()
    assert receiver.stdout.readline() == "ends\n"
    driver.send(b"go")
    while not (status := statuses.recv(timeout=LIMIT_S)).fallback_failed:
        pass
    assert status.applied == 0 and status.state == CommandStatus.STATE_FALLBACK
    receiver.stdin.write("\n")
    finish(receiver)
