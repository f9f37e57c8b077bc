"""Services: calls by threads and tasks, streams, errors, and concurrent callers."""

from __future__ import annotations

import asyncio
import ctypes
import gc
import math
import os
import queue
import signal
import threading
import time
import weakref

import numpy as np
import pytest
import rnet
from conftest import LIMIT_S, finish, settle
from rnet.msgs import Twist, Vector3


class N(ctypes.Structure):
    _fields_ = [("x", ctypes.c_int64)]


def run(main):
    return asyncio.run(asyncio.wait_for(main, LIMIT_S))


def until(condition, what: str) -> None:
    end = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(0.001)  # sleep: between two checks of a condition


def double(request: N) -> N:
    return N(2 * request.x)


def count(request: N):
    for i in range(request.x):
        yield N(i)


class Gate:
    """A handler that reports its requests, and answers when it is released."""

    def __init__(self) -> None:
        self.begun: queue.Queue[int] = queue.Queue()
        self.open = threading.Event()

    def __call__(self, request: N, context: rnet.CallContext) -> N:
        self.begun.put(request.x)
        while not self.open.wait(0.001) and not context.cancelled:
            pass
        return request


def test_a_call_of_every_kind_of_type(node):
    server, home = node("server"), node("home")
    server.service("/double", N, N, double)
    client = home.client("double", N, N)
    assert (client.name, client.call(N(21)).x) == ("/double", 42)
    assert home.call("/double", N(4), N, timeout=LIMIT_S).x == 8
    # Bytes, small and large; protobuf; numpy.
    server.service("/bytes", None, bytes, lambda request: request[::-1])
    large = os.urandom(300_000)
    for request in (b"", b"robot", large):
        assert home.call("/bytes", request, timeout=LIMIT_S) == request[::-1]
    server.service("/flip", Twist, Twist, lambda twist: Twist(linear=Vector3(x=-twist.linear.x)))
    assert home.call("/flip", Twist(linear=Vector3(x=1.5)), Twist, timeout=LIMIT_S).linear.x == -1.5
    record = rnet.types.named_dtype("R", [("x", "f8")])
    server.service("/sum", record, "f8", lambda row: np.float64(row["x"] + 1))
    row = np.zeros((), record)
    assert home.client("/sum", record, "f8").call(row, timeout=LIMIT_S) == 1.0
    stats = client.stats()
    assert (stats.calls, stats.open, stats.late, client.server_count) == (1, 0, 0, 1)


def test_a_reply_without_a_type_may_be_none(node):
    server, client = node("server"), node("client")
    asked = []

    def each(request: N):
        yield from [None] * request.x

    services = [
        server.service("/stop", Twist, None, asked.append),
        server.service("/each", N, None, each),
        server.service("/typed", N, N, lambda request: None),
        server.action("/go", N, None, None, lambda goal: asked.append(goal.x)),
    ]
    stop = client.client("/stop", Twist)
    assert stop.call(Twist(linear=Vector3(x=0.5)), timeout=LIMIT_S) == b""
    assert client.call("/stop", Twist(), timeout=LIMIT_S) == b""
    assert [twist.linear.x for twist in asked] == [0.5, 0.0]
    assert list(client.client("/each", N).stream(N(3), timeout=LIMIT_S)) == [b""] * 3
    assert client.action_client("/go", N).send(N(7)).result(timeout=LIMIT_S) == b"" and asked[-1] == 7
    # A reply with a type is not created from None.
    with pytest.raises(rnet.CallFailedError, match="TypeError"):
        client.call("/typed", N(1), N, timeout=LIMIT_S)
    for service in services:
        service.close()


def test_many_calls_of_many_threads_are_in_flight(node):
    service = node("server").service("/double", N, N, double, at_once=4, backlog=1000)
    client = node("home").client("/double", N, N)
    wrong: queue.Queue[object] = queue.Queue()

    def ask(first: int) -> None:
        try:
            calls = [client.start(N(x), timeout=LIMIT_S) for x in range(first, first + 50)]
            replies = [call.result().x for call in reversed(calls)]
            wrong.put(replies != [2 * x for x in reversed(range(first, first + 50))])
        except Exception as error:
            wrong.put(error)

    threads = [threading.Thread(target=ask, args=(n * 100,)) for n in range(4)]
    for thread in threads:
        thread.start()
    assert [wrong.get(timeout=LIMIT_S) for _ in threads] == [False] * 4
    for thread in threads:
        thread.join()
    assert (service.stats().calls, client.stats().open) == (200, 0)


def test_tasks_call(node):
    node("server").service("/double", N, N, double, backlog=1000)
    client = node("home").client("/double", N, N)

    async def main():
        first = await client.start(N(1))
        together = await asyncio.gather(*(client.start(N(x)) for x in range(100)))
        return [first.x, *(reply.x for reply in together), client.call(N(5)).x]

    assert run(main()) == [2, *(2 * x for x in range(100)), 10]


def test_a_stream_is_iterated(node):
    server, home = node("server"), node("home")
    server.service("/count", N, N, count)
    client = home.client("/count", N, N)
    for length in (0, 1, 200):
        assert [reply.x for reply in client.stream(N(length), timeout=LIMIT_S)] == list(range(length))

    async def main():
        return [reply.x async for reply in client.stream(N(200))]

    assert run(main()) == list(range(200))
    # A call needs exactly one reply: further ones are ignored, a missing one is an error.
    assert client.call(N(5)).x == 0
    with pytest.raises(rnet.CallFailedError) as caught:
        client.call(N(0))
    assert caught.value.kind == "no_reply"
    # All replies were received.
    call = client.stream(N(1))
    assert (call.result().x, list(call), call.done) == (0, [], True)
    with pytest.raises(rnet.ClosedError):
        call.result()


class NoPath(Exception):
    pass


def test_calls_of_one_key_go_to_one_server_while_it_is_there(node):
    client = node("home").client("/who")
    servers = {}
    for name in ("a", "b", "c"):
        servers[name] = node(name).service("/who", None, None, lambda _, name=name: name.encode())
    until(lambda: client.server_count == 3, "all servers are there")
    keys = [f"arm {i}" for i in range(30)]
    asked = {key: client.call(b"", key=key, timeout=LIMIT_S) for key in keys}
    assert len(set(asked.values())) == 3, "30 keys are shared among 3 servers"
    for key in keys:
        assert client.start(b"", key=key, timeout=LIMIT_S).result() == asked[key]
        assert list(client.stream(b"", key=key, timeout=LIMIT_S)) == [asked[key]]
    # Without a key, the servers take turns.
    assert len({client.call(b"", timeout=LIMIT_S) for _ in range(6)}) == 3
    # The keys of a closed server move to others, and no other key moves.
    servers.pop("b").close()
    until(lambda: client.server_count == 2, "it is gone")
    for key in keys:
        now = client.call(b"", key=key, timeout=LIMIT_S)
        assert now != b"b" and (asked[key] == b"b" or now == asked[key])


def test_what_a_handler_raises_is_raised_at_the_caller(node, unraisable):
    def plan(request: N):
        if request.x == 0:
            raise ValueError("there is a wall")
        if request.x == 1:
            raise NoPath("none")
        return "no message"

    service = node("server").service("/plan", N, N, plan)
    client = node("home").client("/plan", N, N)
    caught = []
    for x in range(3):
        with pytest.raises(rnet.CallFailedError) as error:
            client.call(N(x), timeout=LIMIT_S)
        assert (error.value.topic, error.value.node) == ("/plan", "/server")
        caught.append((error.value.kind, error.value.text))
    assert caught[:2] == [("ValueError", "there is a wall"), (f"{NoPath.__module__}.NoPath", "none")]
    assert caught[2][0] == "TypeError" and "the replies of /plan" in caught[2][1]

    async def main():
        await client.start(N(0))

    with pytest.raises(rnet.CallFailedError, match="there is a wall"):
        run(main())
    until(lambda: service.stats().failed == 4, "failures are counted")
    # An error in the middle of a stream, after the earlier replies.
    def some(request: N):
        yield N(1)
        raise KeyError("gone")

    node("other").service("/some", N, N, some)
    stream = node("asks").client("/some", N, N).stream(N(0), timeout=LIMIT_S)
    assert next(stream).x == 1
    with pytest.raises(rnet.CallFailedError, match="gone"):
        next(stream)
    assert list(stream) == [] and unraisable.empty()


def test_a_handler_sees_that_it_is_cancelled(node):
    gate, ended = Gate(), queue.Queue()

    def forever(request: N):
        try:
            while True:
                yield request
        finally:
            ended.put("ended")

    server = node("server")
    waits, streams = server.service("/wait", N, N, gate), server.service("/stream", N, N, forever)
    home = node("home")
    client = home.client("/wait", N, N)
    first, second = client.start(N(1), timeout=LIMIT_S), client.start(N(2), timeout=LIMIT_S)
    assert gate.begun.get(timeout=LIMIT_S) == 1
    until(lambda: waits.stats().waiting == 1, "the second waits")
    second.cancel()
    with pytest.raises(rnet.CallCancelledError):
        second.result()
    del second
    # A waiting thread gets the error.
    told: queue.Queue[BaseException] = queue.Queue()

    def wait() -> None:
        try:
            first.result()
        except rnet.RnetError as error:
            told.put(error)

    thread = threading.Thread(target=wait)
    thread.start()
    first.cancel()
    assert isinstance(told.get(timeout=LIMIT_S), rnet.CallCancelledError)
    thread.join()
    until(lambda: waits.stats().cancelled == 2, "both have ended")
    # Leaving a loop closes the generator.
    for reply in home.client("/stream", N, N).stream(N(3), timeout=LIMIT_S):
        assert reply.x == 3
        break
    del reply
    gc.collect()
    assert ended.get(timeout=LIMIT_S) == "ended"
    until(lambda: streams.stats().cancelled == 1, "it is counted")


def test_a_task_that_is_cancelled_cancels_its_call(node):
    gate = Gate()
    service = node("server").service("/wait", N, N, gate)
    client = node("home").client("/wait", N, N)

    async def main():
        task = asyncio.ensure_future(client.start(N(1)))
        await asyncio.to_thread(gate.begun.get, timeout=LIMIT_S)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(client.start(N(2)), 0.02)

    run(main())
    until(lambda: client.stats().open == 0, "the client has no call")
    until(lambda: service.stats().running == 0, "the handler has ended")


def test_times_and_backlogs_have_an_end(node):
    home = node("home")
    with pytest.raises(rnet.WaitTimeoutError, match="a server of /none"):
        home.call("/none", b"", timeout=0.02)
    gate = Gate()
    service = node("server").service("/wait", N, N, gate, backlog=1)
    client = home.client("/wait", N, N)
    first = client.start(N(1), timeout=math.inf)
    assert gate.begun.get(timeout=LIMIT_S) == 1
    second = client.start(N(2), timeout=LIMIT_S)
    until(lambda: service.stats().waiting == 1, "the second waits")
    with pytest.raises(rnet.errors.RefusedError) as caught:
        client.call(N(3), timeout=LIMIT_S)
    assert (caught.value.backlog, caught.value.node) == (1, "/server")

    async def main():
        await client.start(N(4))

    with pytest.raises(rnet.errors.RefusedError):
        run(main())
    gate.open.set()
    assert (first.result().x, second.result().x) == (1, 2)
    for bad in ({"at_once": 0}, {"backlog": 1 << 20}):
        with pytest.raises(rnet.errors.BadValueError):
            home.service("/bad", N, N, double, **bad)
    with pytest.raises(rnet.errors.BadNameError):
        home.client("/a b")
    with pytest.raises(rnet.IncompatibleTypeError, match=r"calls of /wait: request: client has .*Twist, server has "):
        home.call("/wait", Twist(), N, timeout=LIMIT_S)
    with pytest.raises(TypeError, match="the requests of /wait"):
        client.call(Twist())


def test_what_cannot_be_a_handler_is_refused(node):
    async def plan(request):
        return request

    server = node()
    for bad, why in [(plan, "is async"), (lambda: None, "takes neither"), (3, "is not callable")]:
        with pytest.raises(TypeError, match=why):
            server.service("/plan", N, N, bad)


SERVER = """
import threading, rnet
node = rnet.Node("victim")
def never(request):
    print("called", flush=True)
    threading.Event().wait()
node.service("/plan", None, None, never)
print("ready", flush=True)
threading.Event().wait()
"""


def test_a_server_that_dies_is_named(node, program):
    client = node("home").client("/plan")
    server = program(SERVER)
    assert server.stdout.readline() == "ready\n"
    first, second = client.start(b"1", timeout=LIMIT_S), client.start(b"2", timeout=LIMIT_S)
    assert server.stdout.readline() == "called\n"

    async def main():
        waiting = asyncio.ensure_future(second)
        await asyncio.sleep(0)
        server.kill()
        await waiting

    with pytest.raises(rnet.ServerLostError) as caught:
        run(main())
    with pytest.raises(rnet.ServerLostError):
        first.result()
    assert (caught.value.topic, caught.value.node) == ("/plan", "/victim")
    assert caught.value.host


CLIENT = "import rnet; rnet.Node('victim').call('/wait', b'', timeout=float('inf'))"


def test_the_death_of_a_caller_cancels_its_call(node, program):
    begun: queue.Queue[str] = queue.Queue()

    def wait(request: bytes, context: rnet.CallContext) -> bytes:
        begun.put(context.caller)
        while not context.cancelled:
            time.sleep(0.001)  # sleep: between two checks of a condition
        return b""

    service = node().service("/wait", None, None, wait)
    caller = program(CLIENT)
    assert begun.get(timeout=LIMIT_S) == "/victim"
    caller.kill()
    until(lambda: service.stats().cancelled == 1, "the call has ended")


def test_ctrl_c_ends_a_call(node, program):
    gate = threading.Event()
    asked = threading.Event()

    def wait(_request: bytes) -> bytes:
        asked.set()
        gate.wait(LIMIT_S)
        return b""

    node().service("/wait", None, None, wait)
    caller = program(CLIENT)
    assert asked.wait(LIMIT_S)
    settle(caller)
    caller.send_signal(signal.SIGINT)
    code, _, err = finish(caller)
    assert code != 0 and "KeyboardInterrupt" in err
    gate.set()


def test_a_handler_holds_up_no_callback_and_may_call(node):
    server, home = node("server"), node("home")
    gate, heard = Gate(), queue.Queue()
    server.service("/wait", N, N, gate)
    server.service("/double", N, N, double)
    # A service that calls another service of its own node, and is called from a callback.
    inner = server.client("/double", N, N)
    server.service("/twice", N, N, lambda request: inner.call(inner.call(request)))
    subscriber = server.subscriber("/t", N, on=lambda m: heard.put(server.call("/twice", m, N).x), reliable=True)
    publisher = home.publisher("/t", N, reliable=True)
    publisher.wait_for_subscribers(1, timeout=LIMIT_S)
    blocked = home.client("/wait", N, N).start(N(1))
    assert gate.begun.get(timeout=LIMIT_S) == 1
    publisher.send(N(3))
    assert heard.get(timeout=LIMIT_S) == 12
    gate.open.set()
    assert blocked.result().x == 1
    subscriber.close()


def test_all_that_is_closed_says_so(node):
    server, home = node("server"), node("home")
    gate = Gate()
    with server.service("/wait", N, N, gate) as service:
        client = home.client("/wait", N, N)
        call = client.start(N(1), timeout=LIMIT_S)
        assert gate.begun.get(timeout=LIMIT_S) == 1
    assert service.closed and "/wait" in repr(service)
    with pytest.raises((rnet.ServerLostError, rnet.CallCancelledError)):
        call.result()
    with pytest.raises(rnet.ClosedError):
        service.stats()
    until(lambda: client.server_count == 0, "the server is gone")
    # A call that waits for a server ends when its client or its node is closed.
    for end in (client.close, home.close):
        waiting = (client if end == client.close else home.client("/wait", N, N)).start(N(2), timeout=math.inf)
        told: queue.Queue[BaseException] = queue.Queue()

        def wait(call=waiting, told=told) -> None:
            try:
                call.result()
            except rnet.RnetError as error:
                told.put(error)

        thread = threading.Thread(target=wait)
        thread.start()
        end()
        assert isinstance(told.get(timeout=LIMIT_S), rnet.ClosedError)
        thread.join()
        assert waiting.done
    assert client.closed
    with pytest.raises(rnet.ClosedError):
        client.call(N(1))
    with pytest.raises(rnet.ClosedError):
        home.call("/wait", N(1), N)


def test_a_handler_may_close_its_service_and_its_node(node):
    server, home = node("server"), node("home")
    services: list[rnet.Service] = []

    def stop(request: bytes) -> bytes:
        services[0].close() if request == b"service" else server.close()
        return b"closed"

    # A new client does not know the servers yet, and may call the first service while that closes.
    client = home.client("/stop", None, None)
    services.append(server.service("/stop", None, None, stop))
    assert client.call(b"service", timeout=LIMIT_S) == b"closed"
    until(lambda: client.server_count == 0, "the caller knows that the service is closed")
    services[:] = [server.service("/stop", None, None, stop)]
    assert client.call(b"node", timeout=LIMIT_S) == b"closed"
    until(lambda: server.closed, "the node is closed")


def test_a_service_that_closes_delivers_what_its_handler_answers(node):
    server, home = node("server"), node("home")
    begun: queue.Queue[int] = queue.Queue()
    release = threading.Event()

    def works(request: N) -> N:
        begun.put(request.x)
        release.wait(LIMIT_S)
        return request

    service = server.service("/work", N, N, works, at_once=2)
    client = home.client("/work", N, N)
    calls = [client.start(N(n), timeout=math.inf) for n in (1, 2)]
    assert sorted(begun.get(timeout=LIMIT_S) for _ in calls) == [1, 2]
    closing = threading.Thread(target=service.close)
    closing.start()
    until(lambda: service.closed, "it closes")
    release.set()
    assert [call.result().x for call in calls] == [1, 2]
    closing.join()

    # A running handler that stops because it checks or yields may have done a part of its work.
    def asks(request: N, context: rnet.CallContext) -> N:
        services.pop().close()
        assert context.cancelled and context.reason == "server_closing"
        return request

    def yields(request: N):
        services.pop().close()
        yield request
        yield request

    for handler in (asks, yields):
        services = [server.service("/stops", N, N, handler)]
        with pytest.raises(rnet.ServerLostError), home.client("/stops", N, N).stream(N(1), timeout=LIMIT_S) as replies:
            list(replies)


def test_an_object_that_is_let_go_of_ends_its_call(node):
    gate = Gate()
    service = node("server").service("/wait", N, N, gate)
    home = node("home")
    call = home.client("/wait", N, N).start(N(1), timeout=math.inf)
    gone = weakref.ref(call)
    assert gate.begun.get(timeout=LIMIT_S) == 1
    del call
    gc.collect()
    assert gone() is None
    until(lambda: service.stats().cancelled == 1, "the call has ended")


def test_a_program_ends_while_a_call_is_answered(node, program):
    text = """
import threading, rnet
node = rnet.Node("server")
begun = threading.Event()
def slow(request):
    begun.set()
    threading.Event().wait(0.2)
    return request
node.service("/slow", None, None, slow)
call = node.client("/slow").start(b"")
assert begun.wait(20)
"""
    code, out, err = finish(program(text))
    assert (code, out, err) == (0, "", "")


def test_in_a_forked_child_all_of_it_is_closed(program):
    text = """
import os, sys, rnet
node = rnet.Node("parent")
service = node.service("/echo", None, None, lambda request: request)
client = node.client("/echo")
call = client.start(b"x")
pid = os.fork()
if pid == 0:
    closed = [service.closed, client.closed, call.done]
    for act in (lambda: client.call(b""), call.result, service.stats):
        try:
            act()
        except rnet.ClosedError:
            closed.append(True)
    del service, client, call
    os._exit(0 if closed == [True] * 6 else 1)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
assert (call.result(), client.call(b"y")) == (b"x", b"y")
"""
    assert finish(program(text)) == (0, "", "")


def test_counts_below_zero_are_refused_by_name(node):
    home = node()
    for name, make in [
        ("backlog", lambda: home.service("/a", None, None, bytes, backlog=-1)),
        ("at_once", lambda: home.service("/a", None, None, bytes, at_once=-1)),
        ("backlog", lambda: home.push("/a", backlog=-1)),
        ("queue", lambda: home.action("/a", None, None, None, bytes, policy="queue", queue=-1)),
    ]:
        with pytest.raises(rnet.errors.BadValueError, match=f"{name}.* -1, and must be 0 or more"):
            make()
