"""Actions: goals of threads and tasks, feedback, policies and outcomes."""

from __future__ import annotations

import asyncio
import ctypes
import queue
import threading
import time
from typing import Any

import pytest
import rnet
from conftest import LIMIT_S
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


def count(goal: N):
    for x in range(goal.x):
        yield N(x)
    return N(goal.x * 2)


@pytest.fixture
def robot(node) -> rnet.Node:
    return node("robot")


class Worker:
    """A handler that reports its goals, and works until it is released or cancelled."""

    def __init__(self) -> None:
        self.begun: queue.Queue[int] = queue.Queue()
        self.ended: queue.Queue[str | None] = queue.Queue()
        self.open = threading.Event()

    def __call__(self, goal: N, context: rnet.ActionContext) -> N:
        self.begun.put(goal.x)
        while not self.open.wait(0.001) and not context.cancelled:
            pass
        self.ended.put(context.reason)
        return goal


async def again(goal: rnet.Goal):
    return await goal


def test_a_goal_has_feedback_and_a_result(robot: rnet.Node) -> None:
    action = robot.action("/count", N, N, N, count)
    client = robot.action_client("/count", N, N, N)
    assert (action.name, client.name) == ("/count", "/count")
    goal = client.send(N(3))
    assert [n.x for n in goal] == [0, 1, 2]
    assert not goal.done
    assert goal.result(timeout=LIMIT_S).x == 6
    assert goal.done
    # Each call returns the same result, also in a task.
    assert (goal.result().x, asyncio.run(again(goal)).x) == (6, 6)
    with goal:
        pass
    assert goal.result().x == 6
    heard: list[int] = []
    assert client.send(N(100)).result(on_feedback=lambda n: heard.append(n.x)).x == 200
    assert heard == list(range(100))
    assert client.stats() == rnet.events.ClientStats(calls=2, open=0, late=0, rerouted=0, feedback_skipped=0, feedback_lost=0)
    # A plain function with a context, for messages and for bytes.
    def move(goal: Twist, context: rnet.ActionContext) -> Vector3:
        context.feedback(goal.linear)
        assert (context.caller, context.cancelled, context.reason) == (robot.name, False, None)
        return Vector3(x=goal.linear.x + 1)

    robot.action("/move", Twist, Vector3, Vector3, move)
    goal = robot.action_client("/move", Twist, Vector3, Vector3).send(Twist(linear=Vector3(x=1)))
    assert ([v.x for v in goal], goal.result().x) == ([1], 2)
    robot.action("/upper", None, None, None, lambda text: text.upper())
    assert robot.action_client("/upper").send(b"robot").result() == b"ROBOT"


def test_async_goals(robot: rnet.Node) -> None:
    robot.action("/count", N, N, N, count)
    client = robot.action_client("/count", N, N, N)

    async def main():
        goal = client.send(N(50))
        heard = [n.x async for n in goal]
        assert heard == list(range(50))
        assert (await goal).x == 100
        # Two tasks read the feedback and the result.
        goal = client.send(N(200))

        async def hear():
            return len([n async for n in goal])

        heard, result = await asyncio.gather(hear(), goal)
        assert (heard, result.x) == (200, 400)

    run(main())


def test_a_task_that_ends_cancels_its_goal(robot: rnet.Node) -> None:
    worker = Worker()
    robot.action("/work", N, N, N, worker)
    client = robot.action_client("/work", N, N, N)

    async def main():
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(client.send(N(1)), 0.05)

    run(main())
    assert worker.ended.get(timeout=LIMIT_S) == "caller"


def test_policies(robot: rnet.Node) -> None:
    worker = Worker()
    with robot.action("/work", N, N, N, worker):
        client = robot.action_client("/work", N, N, N)
        first = client.send(N(1))
        assert worker.begun.get(timeout=LIMIT_S) == 1
        with pytest.raises(rnet.errors.RefusedError) as refused:
            client.send(N(2)).result()
        assert (refused.value.running, refused.value.node) == (robot.name, robot.name)
        worker.open.set()
        assert first.result().x == 1
    worker = Worker()
    with robot.action("/queued", N, N, N, worker, policy="queue", queue=1):
        client = robot.action_client("/queued", N, N, N)
        goals = [client.send(N(x)) for x in (1, 2)]
        assert worker.begun.get(timeout=LIMIT_S) == 1
        worker.open.set()
        assert [goal.result().x for goal in goals] == [1, 2]
    worker = Worker()
    with robot.action("/replaced", N, N, N, worker, policy="replace"):
        client = robot.action_client("/replaced", N, N, N)
        first = client.send(N(1))
        assert worker.begun.get(timeout=LIMIT_S) == 1
        second = client.send(N(2))
        with pytest.raises(rnet.CallCancelledError) as cancelled:
            first.result()
        assert (cancelled.value.reason, worker.ended.get(timeout=LIMIT_S)) == ("preempted", "preempted")
        assert worker.begun.get(timeout=LIMIT_S) == 2
        worker.open.set()
        assert second.result().x == 2
    wrongs: list[tuple[dict[str, Any], str]] = [
        ({"policy": "first"}, "policy"),
        ({"policy": "queue", "queue": 0}, "/wrong"),
        ({"policy": "queue", "queue": -1}, "queue"),
        ({"policy": "queue"}, "queue of /wrong: it is missing"),
        ({"queue": 3}, 'queue of /wrong: it is 3, but goals do not wait with policy="reject"'),
        ({"policy": "replace", "queue": 3}, 'goals do not wait with policy="replace"'),
    ]
    for wrong, said in wrongs:
        with pytest.raises(rnet.errors.BadValueError, match=said):
            robot.action("/wrong", N, N, N, worker, **wrong)


def test_cancel(robot: rnet.Node) -> None:
    worker = Worker()
    action = robot.action("/work", N, N, N, worker)
    client = robot.action_client("/work", N, N, N)
    goal = client.send(N(1))
    assert worker.begun.get(timeout=LIMIT_S) == 1
    with pytest.raises(rnet.WaitTimeoutError):
        goal.result(timeout=0.01)
    goal.cancel()
    with pytest.raises(rnet.CallCancelledError) as cancelled:
        goal.result()
    assert (cancelled.value.reason, cancelled.value.topic, goal.done) == ("caller", "/work", True)
    assert (worker.ended.get(timeout=LIMIT_S), list(goal)) == ("caller", [])
    with client.send(N(2)) as goal:
        assert worker.begun.get(timeout=LIMIT_S) == 2
    assert worker.ended.get(timeout=LIMIT_S) == "caller"
    with pytest.raises(rnet.CallCancelledError):
        goal.result()
    until(lambda: action.stats().running == 0, "it has ended")
    with pytest.raises(rnet.WaitTimeoutError):
        client.send(N(3), timeout=0.05).result()
    assert worker.ended.get(timeout=LIMIT_S) == "timed_out"
    # The client is closed.
    until(lambda: action.stats().running == 0, "it has ended")
    goal = client.send(N(4))
    waits: queue.Queue[Exception] = queue.Queue()

    def wait() -> None:
        try:
            goal.result()
        except rnet.RnetError as error:
            waits.put(error)

    thread = threading.Thread(target=wait)
    thread.start()
    client.close()
    assert isinstance(waits.get(timeout=LIMIT_S), rnet.ClosedError)
    thread.join()
    with pytest.raises(rnet.ClosedError):
        client.send(N(5))


def test_a_generator_is_closed_when_its_goal_is_cancelled(robot: rnet.Node) -> None:
    ended = threading.Event()

    def forever(goal: bytes):
        try:
            while True:
                yield goal
        finally:
            ended.set()

    robot.action("/forever", None, None, None, forever)
    goal = robot.action_client("/forever").send(b"x")
    assert next(goal) == b"x"
    goal.cancel()
    with pytest.raises(rnet.CallCancelledError) as cancelled:
        goal.result()
    assert cancelled.value.reason == "caller"
    assert ended.is_set()


def test_what_a_handler_raises_travels(robot: rnet.Node) -> None:
    def fails(goal: bytes):
        yield goal
        raise ValueError("there is a wall")

    robot.action("/fails", None, None, None, fails)
    goal = robot.action_client("/fails").send(b"x")
    assert list(goal) == [b"x"]
    with pytest.raises(rnet.CallFailedError) as failed:
        goal.result()
    assert (failed.value.kind, failed.value.text) == ("ValueError", "there is a wall")
    with pytest.raises(TypeError):
        robot.action("/wrong", None, None, None, lambda: None)


def test_a_node_that_closes_ends_its_goals(node) -> None:
    worker = Worker()
    with node("other") as other:
        other.action("/work", N, N, N, worker)
        goal = node("robot").action_client("/work", N, N, N).send(N(1))
        assert worker.begun.get(timeout=LIMIT_S) == 1
    with pytest.raises((rnet.CallCancelledError, rnet.ServerLostError)):
        goal.result()
    assert worker.ended.get(timeout=LIMIT_S) == "server_closing"


def test_an_operator_ends_the_goals_of_all(robot: rnet.Node) -> None:
    worker = Worker()
    action = robot.action("/work", N, N, N, worker, policy="queue", queue=2)
    client, operator = robot.action_client("/work", N, N, N), robot.action_client("/work", N, N, N)
    goals = [client.send(N(x)) for x in range(2)]
    assert worker.begun.get(timeout=LIMIT_S) == 0
    until(lambda: action.stats().waiting == 1, "the second goal waits")
    until(lambda: operator.server_count == 1, "the operator sees the server")
    assert operator.cancel_all() == 1
    for goal in goals:
        with pytest.raises(rnet.CallCancelledError) as cancelled:
            goal.result(timeout=LIMIT_S)
        assert cancelled.value.reason == "operator"
    assert worker.ended.get(timeout=LIMIT_S) == "operator"
    operator.close()
    with pytest.raises(rnet.ClosedError):
        operator.cancel_all()
