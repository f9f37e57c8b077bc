"""Exit of a program with busy or hanging callbacks: it waits two seconds for them, and exits normally."""

from __future__ import annotations

import signal

import pytest
from conftest import finish, settle

PROGRAM = """
import sys, threading
import rnet

node = rnet.Node("ends")
begun = threading.Event()

def hangs(*_):
    begun.set()
    threading.Event().wait()

def busy(*_):
    begun.set()
    while True:
        try:
            for n in range(1000):
                n * n
        except BaseException:
            pass

def send(publisher):
    publisher.wait_for_subscribers()
    publisher.send(b"1")
    return publisher

MAKE
begun.wait()
print("main ends", flush=True)
END
"""

WAYS = {
    "timer": "kept = node.timer(0.01, hangs)",
    "busy timer": "kept = node.timer(0.01, busy)",
    "subscriber": "kept = node.subscriber('/t', on=hangs), send(node.publisher('/t'))",
    "busy subscriber": "kept = node.subscriber('/t', on=busy), send(node.publisher('/t'))",
    "any": "kept = node.subscribe_any('/t', hangs), send(node.publisher('/t', transient_local=1))",
    "urgent and bulk": "kept = node.timer(0.01, hangs), node.timer(0.01, busy, urgent=True)",
    "service": "kept = node.service('/s', None, None, hangs), node.client('/s').start(b'1')",
    "busy service": "kept = node.service('/s', None, None, busy), node.client('/s').start(b'1')",
    "generator": "kept = node.service('/s', None, None, lambda r: (busy() for _ in r)), node.client('/s').start(b'1')",
    "action": "kept = node.action('/a', None, None, None, busy), node.action_client('/a').send(b'1')",
    "jobs": "kept = node.pull('/q', on=hangs), node.push('/q'); kept[1].push(b'1')",
    "parameter": "kept = node.param('/g', default=1.0, on_change=hangs); kept.set(2.0)",
    "watch": "kept = node.state.watch('/k'); kept.on(busy); node.state['/k'] = 1",
    "node that was let go of": "kept = node.timer(0.01, hangs); begun.wait(); del node, kept",
    "two nodes": "kept = [rnet.Node(f'n{n}').timer(0.01, hangs) for n in range(4)]",
}


def without_log(text: str) -> list[str]:
    """The lines that are not from the node's log, which reports unfinished jobs."""
    return [line for line in text.splitlines() if not line.startswith("[WARN]")]


@pytest.mark.parametrize("way", WAYS)
def test_a_program_ends_though_a_callback_does_not(program, way):
    process = program(PROGRAM.replace("MAKE", WAYS[way]).replace("END", "sys.exit(3)"))
    code, out, errors = finish(process)
    assert (code, out, without_log(errors)) == (3, "main ends\n", [])


def test_what_was_registered_to_run_at_the_end_runs(program):
    end = "import atexit; atexit.register(print, 'atexit of mine'); sys.stdout.write('not flushed; ')"
    process = program(PROGRAM.replace("MAKE", WAYS["busy timer"]).replace("END", end))
    assert finish(process) == (0, "main ends\nnot flushed; atexit of mine\n", "")


CTRL_C = {
    "in the main thread": "threading.Event().wait()",
    "in a with block": "with node:\n    threading.Event().wait()",
    "in a with block of the timer": "with kept:\n    threading.Event().wait()",
}


@pytest.mark.parametrize("place", CTRL_C)
def test_one_ctrl_c_ends_it(program, place):
    process = program(PROGRAM.replace("MAKE", WAYS["timer"]).replace("END", CTRL_C[place]))
    assert process.stdout.readline() == "main ends\n"
    settle(process)
    process.send_signal(signal.SIGINT)
    code, _, errors = finish(process)
    assert code == -signal.SIGINT and errors.rstrip().endswith("KeyboardInterrupt")


CLOSES = {
    "node": ("timer", "node.close()"),
    "timer": ("timer", "kept.cancel()"),
    "subscriber": ("subscriber", "kept[0].close()"),
    "any": ("any", "kept[0].cancel()"),
    "service": ("service", "kept[0].close()"),
    "worker": ("jobs", "kept[0].close()"),
    "watch": ("watch", "kept.close()"),
}


@pytest.mark.parametrize("what", CLOSES)
def test_ctrl_c_ends_a_close_that_waits_for_a_callback(program, what):
    way, close = CLOSES[what]
    end = f"try:\n    {close}\nexcept KeyboardInterrupt:\n    print('interrupted')"
    process = program(PROGRAM.replace("MAKE", WAYS[way].replace("busy", "hangs")).replace("END", end))
    assert process.stdout.readline() == "main ends\n"
    settle(process)
    process.send_signal(signal.SIGINT)
    code, out, errors = finish(process)
    assert (code, out, without_log(errors)) == (0, "interrupted\n", [])


COMMAND = """
import os, time
command = rnet.Node("base").command("/cmd", None, lambda _: None, fallback=FALLBACK, deadline=600)
driver = rnet.Node("hand").drive("/cmd", lease=600, timeout=60)
driver.send(b"go")
"""
RESTS = "lambda why: (time.sleep(0.2), os.write(1, why.encode()))"  # sleep: as long as a robot needs

OTHERS = {
    "a callback hangs": "COMMAND\nother = rnet.Node('other')\nkept = other.timer(0.01, hangs)",
    "one hung that was let go of": "kept = node.timer(0.01, hangs); begun.wait(); del node, kept\nCOMMAND",
    "a with block was left": "kept = node.timer(0.01, hangs); begun.wait()\ntry:\n    with node:\n        sys.exit()\n"
    "except SystemExit:\n    pass\nCOMMAND",
}


@pytest.mark.parametrize("other", OTHERS)
def test_the_last_fallback_runs_whatever_another_callback_does(program, other):
    make = OTHERS[other].replace("COMMAND", COMMAND.replace("FALLBACK", RESTS))
    text = PROGRAM.replace("MAKE", make).replace("END", "")
    code, out, errors = finish(program(text))
    opened, ended = out.split("main ends\n")
    assert (code, opened, without_log(errors)) == (0, "opened", []) and ended in ("closed", "driver_lost", "released")


def test_a_close_ends_where_no_thread_can_be_started(program):
    make = "kept = node.timer(0.01, works)"
    end = """
import resource
pages = int(open("/proc/self/statm").read().split()[0])
resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + (1 << 20), -1))
kept.cancel()
print("closed")"""
    works = """
def works(_):
    begun.set()
    for _ in range(20):
        threading.Event().wait(0.02)  # sleep: the callback runs while it is closed
"""
    text = PROGRAM.replace("MAKE", works + make).replace("END", end)
    assert finish(program(text)) == (0, "main ends\nclosed\n", "")
