"""Several processes, their exits, Ctrl-C, and the GIL."""

from __future__ import annotations

import os
import queue
import signal
import sys
import threading
import time

import pytest
import rnet
from conftest import LIMIT_S, finish, settle

ECHO = """
import rnet
node = rnet.Node("echo")
replies = node.publisher("/reply")
for message in node.subscriber("/ask"):
    replies.send(message)
"""


def test_two_processes(node, program):
    home = node()
    asks, replies = home.publisher("/ask"), home.subscriber("/reply")
    events: queue.Queue = queue.Queue()
    asks.on_match(events.put)
    echo = program(ECHO)
    asks.wait_for_subscribers(1, timeout=LIMIT_S)
    replies.wait_for_publishers(1, timeout=LIMIT_S)
    for length in (0, 1, 5000, 3_000_000):
        message = os.urandom(length)
        asks.send(message)
        assert bytes(replies.recv(timeout=LIMIT_S)) == message
    assert events.get(timeout=LIMIT_S).kind == "matched"
    echo.kill()
    event = events.get(timeout=LIMIT_S)
    assert (event.kind, event.node) == ("lost", "/echo")
    with pytest.raises(rnet.PeerLostError) as caught:
        replies.recv(timeout=LIMIT_S)
    assert (caught.value.topic, caught.value.node) == ("/reply", "/echo")
    # The next process takes over under the same name.
    program(ECHO)
    asks.wait_for_subscribers(1, timeout=LIMIT_S)
    replies.wait_for_publishers(1, timeout=LIMIT_S)
    asks.send(b"again")
    assert bytes(replies.recv(timeout=LIMIT_S)) == b"again"


WAITS = {
    "recv": "subscriber.recv()",
    "recv_spin": "node.subscriber('/t', wait='spin').recv()",
    "recv_block": "node.subscriber('/t', wait='block').recv(timeout=1000)",
    "iterate": "list(subscriber)",
    "latest": "subscriber.latest()",
    "recv_many": "subscriber.recv_many(dtype='u1')",
    "recv_bytes": "node.subscriber('/t', bytes).recv()",
    "recv_behind_a_thread": "Thread(target=quiet, daemon=True).start(); subscriber.recv()",
    "merge": "rnet.Merge(subscriber, node.subscriber('/u')).recv()",
    "wait_set": "waits = rnet.WaitSet(node); waits.attach(subscriber); waits.wait()",
    "wait_for_publishers": "subscriber.wait_for_publishers()",
    "wait_for_subscribers": "node.publisher('/u').wait_for_subscribers(2)",
    "send": "fill(lambda publisher: publisher.send(bytes(1000)))",
    "send_large": "fill(lambda publisher: publisher.send(bytes(100_000)))",
    "send_many": "fill(lambda publisher: publisher.send_many(memoryview(bytes(5000)).cast('B', (5, 1000))))",
    "loan": "fill(lambda publisher: publisher.loan(100_000).send())",
    "send_loan": "fill(lambda publisher: publisher.loan(1000).send())",
}

INTERRUPTED = """
from threading import Thread
import rnet
node = rnet.Node("node")
subscriber = node.subscriber("/t")

def quiet():
    try:
        subscriber.recv()
    except rnet.ClosedError:
        pass

def fill(send):
    slow = node.subscriber("/f", reliable=True)
    publisher = node.publisher(
        "/f", reliable=True, on_full=rnet.Wait(1000), log_len_bytes=16384, pool_limit_bytes=1 << 20
    )
    publisher.wait_for_subscribers()
    while True:
        send(publisher)

try:
    print("waiting", flush=True)
    WAIT
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


@pytest.mark.parametrize("wait", WAITS)
def test_ctrl_c_ends_every_wait(program, wait):
    process = program(INTERRUPTED.replace("WAIT", WAITS[wait]))
    assert process.stdout.readline() == "waiting\n"
    settle(process, "R" if wait == "recv_spin" else "S")
    os.kill(process.pid, signal.SIGINT)
    # If this takes as long as the wait would, the process is killed and the test fails.
    assert finish(process) == (0, "interrupted\n", "")


@pytest.mark.parametrize("wait", ["recv", "recv_many", "merge", "wait_for_subscribers"])
def test_a_wait_sleeps_on(program, wait):
    process = program(INTERRUPTED.replace("WAIT", WAITS[wait]))
    assert process.stdout.readline() == "waiting\n"
    settle(process)
    began, before = time.monotonic(), sleeps(process)
    time.sleep(2.5)  # sleep: tests that nothing happens meanwhile
    woken = sleeps(process) - before
    # However slow this process is: at most one wake-up a second, and one more.
    assert woken <= time.monotonic() - began + 1


def sleeps(process):
    """How often the main thread has gone to sleep."""
    with open(f"/proc/{process.pid}/task/{process.pid}/status") as status:
        fields = dict(line.split(":", 1) for line in status)
    return int(fields["voluntary_ctxt_switches"])


TAKES = """
import signal, sys, threading

def take():
    sys.stdin.readline()
    signal.pthread_kill(threading.get_ident(), signal.SIGINT)

threading.Thread(target=take, daemon=True).start()
"""


# A wait that spins never sleeps.
@pytest.mark.parametrize("wait", [wait for wait in WAITS if wait != "recv_spin"])
def test_a_signal_that_another_thread_takes_is_served_by_the_main_thread(program, wait):
    process = program(TAKES + INTERRUPTED.replace("WAIT", WAITS[wait]))
    assert process.stdout.readline() == "waiting\n"
    settle(process)
    process.stdin.write("take\n")
    assert finish(process) == (0, "interrupted\n", "")


def test_a_send_waits_as_long_as_it_may_however_often_signals_come(program):
    """Each signal ends the sleep, and none ends or restarts the wait."""
    process = program("""
import signal, time, rnet
node = rnet.Node("node")
slow = node.subscriber("/f", reliable=True)
publisher = node.publisher("/f", reliable=True, on_full=rnet.Wait(2), log_len_bytes=16384)
publisher.wait_for_subscribers()
signal.signal(signal.SIGALRM, lambda *_: None)
signal.setitimer(signal.ITIMER_REAL, 0.1, 0.1)
try:
    while True:
        began = time.monotonic()
        publisher.send(bytes(1000))
except rnet.FullError:
    signal.setitimer(signal.ITIMER_REAL, 0)
    print("full", time.monotonic() - began >= 2)
""")
    # If each signal restarted the wait, the process would be killed and the test would fail.
    assert finish(process) == (0, "full True\n", "")


def test_a_signal_handler_that_returns_lets_the_wait_go_on(program, node):
    process = program("""
import signal, rnet
handled = []
signal.signal(signal.SIGUSR1, lambda *_: handled.append(True))
subscriber = rnet.Node("listener").subscriber("/t")
ready = rnet.Node("ready").publisher("/ready")
print("ready", flush=True)
message = subscriber.recv()
print(bytes(message).decode(), len(handled) > 0)
""")
    publisher = node().publisher("/t")
    publisher.wait_for_subscribers(1, timeout=LIMIT_S)
    assert process.stdout.readline() == "ready\n"
    settle(process)
    os.kill(process.pid, signal.SIGUSR1)
    settle(process)
    publisher.send(b"later")
    assert finish(process) == (0, "later True\n", "")


def test_the_gil_is_free_during_every_wait(node):
    home = node()
    subscriber, publisher = home.subscriber("/t"), home.publisher("/u")
    merged = rnet.Merge(home.subscriber("/v"), home.subscriber("/w"))
    waits = [
        lambda: subscriber.recv(timeout=60),
        lambda: subscriber.latest(timeout=60),
        lambda: subscriber.wait_for_publishers(1, timeout=60),
        lambda: publisher.wait_for_subscribers(1, timeout=60),
        lambda: merged.recv(timeout=60),
    ]
    interval = sys.getswitchinterval()
    # Threads are not forced to release the GIL: a wait that kept it would stop this thread permanently.
    sys.setswitchinterval(1000)
    try:
        for wait in waits:
            ended = threading.Event()

            def waiting(wait=wait, ended=ended) -> None:
                with pytest.raises(rnet.RnetError):
                    wait()
                ended.set()

            thread = threading.Thread(target=waiting, daemon=True)
            thread.start()
            assert sum(1 for _ in range(100_000)) == 100_000
            assert not ended.is_set()
    finally:
        sys.setswitchinterval(interval)
    home.close()


ENDS = {
    "nothing is closed": "",
    "a callback runs": "publisher.send(b'x'); started.wait()",
    "a thread receives": "threading.Thread(target=quiet, args=[plain.recv], daemon=True).start()",
    "a loan is open": "memory = publisher.loan(100_000).data",
    "a sample is held": "publisher.send(bytes(100_000)); held = plain.recv()",
    "a view is held": "publisher.send(bytes(100_000)); view = plain.recv().data[3:]",
    "a cycle holds it": "cycle = [node, publisher, plain]; cycle.append(cycle)",
    "sys.exit": "import sys; sys.exit(0)",
    "globals outlive modules": "import builtins; builtins.kept = (node, publisher, plain)",
    "messages keep coming": "threading.Thread(target=flood, daemon=True).start()",
}

ENDING = """
import threading, rnet
node = rnet.Node("node")
publisher = node.publisher("/t")
started = threading.Event()
node.subscriber("/t", on=lambda message: started.set())
plain = node.subscriber("/t")
publisher.wait_for_subscribers(2)
plain.wait_for_publishers()

def quiet(wait):
    try:
        wait()
    except rnet.ClosedError:
        pass

def flood():
    try:
        while True:
            publisher.send(b"x")
    except rnet.ClosedError:
        pass

END
"""


@pytest.mark.parametrize("end", ENDS)
def test_a_program_ends_well_whatever_it_still_has(program, domain, end):
    process = program(ENDING.replace("END", ENDS[end]))
    assert finish(process) == (0, "", "")
    assert os.listdir(f"{domain}/nodes") == []


def test_nodes_are_collected_without_close(program, domain):
    process = program("""
import gc, os, rnet
def use():
    node = rnet.Node("node")
    publisher, subscriber = node.publisher("/t"), node.subscriber("/t")
    publisher.wait_for_subscribers()
    publisher.send(bytes(10_000))
    return subscriber.recv()
sample = use()
gc.collect()
again = rnet.Node("other")
print(len(sample))
""")
    assert finish(process) == (0, "10000\n", "")
    assert os.listdir(f"{domain}/nodes") == []


def test_a_subscriber_keeps_its_node(node, program):
    listener = program("""
import rnet
for message in rnet.Node("listener").subscriber("/t"):
    print(bytes(message).decode(), flush=True)
    break
""")
    publisher = node().publisher("/t")
    publisher.wait_for_subscribers(1, timeout=LIMIT_S)
    publisher.send(b"hello")
    assert finish(listener) == (0, "hello\n", "")


def test_late_joiners_get_what_was_kept(node):
    publisher = node("sender").publisher("/t", transient_local=2, reliable=True)
    for n in range(5):
        publisher.send(bytes([n]))
    late = node("late").subscriber("/t", transient_local=True, reliable=True)
    assert [bytes(late.recv(timeout=LIMIT_S)) for _ in range(2)] == [b"\3", b"\4"]
    plain = node("plain").subscriber("/t")
    plain.wait_for_publishers(1, timeout=LIMIT_S)
    assert plain.try_recv() is None


def test_a_forked_child_leaves_its_parents_nodes_alone(program, node):
    process = program("""
import gc, os, sys, rnet
node = rnet.Node("parent")
publisher, subscriber = node.publisher("/t"), node.subscriber("/t")
node.subscriber("/t", on=lambda message: None)
publisher.wait_for_subscribers(2)
subscriber.wait_for_publishers()
publisher.send(bytes([7]) * 10_000)
sample = subscriber.recv()
loan = publisher.loan(10_000)
waits = rnet.WaitSet(node)
waits.attach(subscriber)
child = os.fork()
if child == 0:
    for use in (lambda: publisher.send(b"x"), subscriber.recv, lambda: subscriber.lost,
                lambda: node.publisher("/u"), lambda: rnet.Merge(subscriber).recv(),
                waits.wait, lambda: waits.detach(subscriber)):
        try:
            use()
            raise SystemExit("not closed")
        except rnet.ClosedError as error:
            assert "before this process was forked" in str(error), error
    assert node.closed and publisher.closed and subscriber.closed
    del sample, loan
    publisher.close(); subscriber.close(); node.close()
    with rnet.Node("child") as own:
        back = own.publisher("/back")
        back.wait_for_subscribers()
        back.send(b"from the child")
    del node, publisher, subscriber, use
    gc.collect()
    sys.exit(3)
_, status = os.waitpid(child, 0)
assert os.waitstatus_to_exitcode(status) == 3, status
for n in range(50):
    publisher.send(bytes([n]) * 10_000)
    assert bytes(subscriber.recv())[:1] == bytes([n])
assert bytes(sample) == bytes([7]) * 10_000
print("parent goes on")
""")
    back = node("outside").subscriber("/back")
    message = back.recv(timeout=LIMIT_S)
    assert bytes(message) == b"from the child"
    code, out, err = finish(process)
    assert (code, out) == (0, "parent goes on\n"), err


FORKS = {
    "fork": (0, "closed\n"),
    "forkserver": (0, "fresh\n"),
    "spawn": (0, "fresh\n"),
}


@pytest.mark.parametrize("method", FORKS)
def test_multiprocessing(program, method, tmp_path):
    script = tmp_path / "work.py"
    script.write_text(f"""
import multiprocessing, os, rnet

publisher = None

def work():
    if publisher is None:
        print("fresh", flush=True)
    else:
        try:
            publisher.send(b"x")
        except rnet.ClosedError:
            print("closed", flush=True)
    rnet.Node("child" + str(os.getpid())).close()

if __name__ == "__main__":
    node = rnet.Node("parent")
    publisher = node.publisher("/t")
    worker = multiprocessing.get_context("{method}").Process(target=work)
    worker.start()
    worker.join()
    assert worker.exitcode == 0, worker.exitcode
    publisher.send(b"the parent goes on")
""")
    process = program(f"import runpy; runpy.run_path({str(script)!r}, run_name='__main__')")
    code, out, err = finish(process)
    assert (code, out) == FORKS[method], err


def test_the_death_of_a_parent_is_seen_though_its_child_lives(node, program):
    home = node("survivor")
    events: queue.Queue = queue.Queue()
    home.on_node(events.put)
    process = program("""
import os, sys, rnet
node = rnet.Node("parent")
if os.fork() == 0:
    os.read(0, 1)
    os._exit(0)
print("forked", flush=True)
os.read(0, 1)
""")
    assert process.stdout.readline() == "forked\n"
    assert events.get(timeout=LIMIT_S) == ("joined", "/parent")
    os.kill(process.pid, signal.SIGKILL)
    assert events.get(timeout=LIMIT_S) == ("died", "/parent")
    # The child is still alive, and does not hold any of it.
    node("parent")
    assert events.get(timeout=LIMIT_S) == ("joined", "/parent")


ODD_ENDS = {
    "_exit": ("os._exit(0)", 0),
    "_exit in a callback": ("publisher.send(b'end'); threading.Event().wait()", 0),
    "close in atexit": ("atexit.register(node.close)", 0),
    "a thread in each wait": ("[threading.Thread(target=quiet, args=[w], daemon=True).start()"
                              " for w in (plain.recv, publisher.wait_for_subscribers)]", 0),
}

ODD_ENDING = """
import atexit, os, threading, rnet
node = rnet.Node("node")
publisher = node.publisher("/t")
node.subscriber("/t", on=lambda message: bytes(message) == b"end" and os._exit(0))
plain = node.subscriber("/t")
publisher.wait_for_subscribers(3)  # The third one is the survivor's: it knows this node now.

def quiet(wait):
    try:
        wait()
    except rnet.ClosedError:
        pass

END
"""


@pytest.mark.parametrize("end", ODD_ENDS)
def test_odd_ends(program, node, end):
    home = node("survivor")
    events: queue.Queue = queue.Queue()
    home.on_node(events.put)
    ear = home.subscriber("/t")
    text, expected = ODD_ENDS[end]
    process = program(ODD_ENDING.replace("END", text))
    assert finish(process) == (expected, "", "")
    assert events.get(timeout=LIMIT_S) == ("joined", "/node")
    kind = "died" if end.startswith("_exit") else "left"
    assert events.get(timeout=LIMIT_S) == (kind, "/node")
    ear.close()


NO_THREADS = """
import os, queue, resource, sys
import rnet, rnet.errors, rnet.events, rnet.event_loop  # All, before another user may not read them.
if os.getuid() == 0:  # No limit holds for root.
    os.setuid(65534)
node = rnet.Node("node")
publisher, subscriber = node.publisher("/t"), node.subscriber("/t")
got, errors = queue.Queue(), queue.Queue()
soft, hard = resource.getrlimit(resource.RLIMIT_NPROC)
resource.setrlimit(resource.RLIMIT_NPROC, (1, hard))
subscriber.on(got.put, on_error=errors.put)
error = errors.get_nowait()
assert isinstance(error, rnet.errors.LimitReachedError) and "ulimit -u" in str(error), error
sys.unraisablehook = lambda told: errors.put(told.exc_value)
node.subscriber("/u", on=got.put)
assert isinstance(errors.get_nowait(), rnet.errors.LimitReachedError)
publisher.wait_for_subscribers(1)
publisher.send(b"early")
assert got.empty()
resource.setrlimit(resource.RLIMIT_NPROC, (soft, hard))
print(bytes(got.get(timeout=20)))
"""


def test_a_callback_whose_thread_cannot_be_started_is_told_of(program, domain):
    os.chmod(os.path.dirname(domain), 0o1777)
    assert finish(program(NO_THREADS)) == (0, "b'early'\n", "")


TRUNCATED = """
import faulthandler, os
faulthandler.enable()
import rnet
node = rnet.Node("victim")
subscriber = node.subscriber("/t")
print("ready", flush=True)
subscriber.recv()
print("one", flush=True)
input()
try:
    while True:
        subscriber.recv(timeout=20)
except rnet.RnetError as error:
    print(type(error).__name__, "truncated" in str(error))
"""


def test_faulthandler_leaves_truncated_files_to_rnet(program, node, domain):
    """As long as it is enabled first; docs/guide/processes.md says so."""
    victim = program(TRUNCATED)
    assert victim.stdout.readline() == "ready\n"
    sender = node("sender")
    publisher = sender.publisher("/t")
    publisher.wait_for_subscribers(1, timeout=LIMIT_S)
    publisher.send(b"x")
    assert victim.stdout.readline() == "one\n"
    (folder,) = (name for name in os.listdir(f"{domain}/nodes") if name.startswith("sender@"))
    (log,) = (name for name in os.listdir(f"{domain}/nodes/{folder}") if name.startswith("p0"))
    os.truncate(f"{domain}/nodes/{folder}/{log}", 0)
    victim.stdin.write("\n")
    victim.stdin.flush()
    assert finish(victim) == (0, "CorruptError True\n", "")
