"""The service, action, command and work queue endpoints of a conformance actor, its last wills and log lines, and its
steps on them: see parts.rs and talk.rs of conformance."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import rnet
import rnet.errors
from rnet.msgs import Log

LONG_S = 120
SERVICE, ACTION, COMMAND, QUEUE = "/count", "/turn", "/wheels", "/jobs"


class TooMany(Exception):
    """The error of a handler. Callers get the name of its class, without a module as in the other languages."""

    __module__ = "__main__"


class Jammed(Exception):
    """The error of a job."""

    __module__ = "__main__"


def eventually(what: str, holds: Callable[[], bool]) -> None:
    until = time.monotonic() + LONG_S
    while not holds():
        if time.monotonic() > until:
            raise SystemExit(f"conformance_actor: waited in vain until {what}")
        time.sleep(0.001)  # sleep: polling interval


def said(*words: str) -> dict[str, list[str]]:
    return {"Said": list(words)}


def act(steps: object, step: str | dict[str, Any]) -> Any:
    """Executes a step: an enum of serde. Its outcome in words is empty if the method returns none."""
    kind, given = (step, {}) if isinstance(step, str) else next(iter(step.items()))
    outcome = getattr(steps, kind)(**given)
    return said() if outcome is None else outcome


class Words:
    """Reports of callbacks."""

    def __init__(self) -> None:
        self._words: list[str] = []
        self._lock = threading.Lock()

    def add(self, word: str) -> None:
        with self._lock:
            self._words.append(word)

    def at_least(self, count: int) -> dict[str, list[str]]:
        """All, once this many exist."""
        eventually("the reports exist", lambda: len(self._words) >= count)
        with self._lock:
            return said(*self._words)


def word_of(error: rnet.RnetError) -> str:
    """An error as the behaviours compare it: its kind and its node."""
    if isinstance(error, rnet.errors.CallFailedError):
        return f"failed {error.kind} of {error.node}"
    if isinstance(error, rnet.errors.CallCancelledError):
        return f"cancelled {error.reason}"
    if isinstance(error, rnet.errors.RefusedError) and error.running:
        return f"refused for {error.running}"
    return f"{error.code} {error.node}" if error.node else error.code


class Parts:
    def __init__(self, node: rnet.Node) -> None:
        self.node = node
        self.words = Words()
        self.calls: list[Any] = []
        self.goals: list[Any] = []
        self.client: Any = None
        self.action: Any = None
        self.service: Any = None
        self.driver: Any = None
        self.command: Any = None
        self.job: Any = None
        self.puller: Any = None
        self.pusher: Any = None

    def _finish(self, then: int, context: Any) -> None:
        """The handler's action after its count."""
        if then == 1:
            raise TooMany("it counts no further")
        if then == 2:
            while context.reason is None:
                time.sleep(0.001)  # sleep: polling interval
            self.words.add(context.reason)

    def _count(self, request: bytes, context: Any) -> Iterator[bytes]:
        self.words.add(f"begun {request[0]}")
        for number in range(request[0]):
            yield bytes([number])
        self._finish(request[1], context)

    def Serve(self, backlog: int) -> None:
        self.service = self.node.service(SERVICE, None, None, self._count, backlog=backlog)

    def ServeGoals(self, queue: int, replace: bool) -> None:
        def turn(goal: bytes, context: Any) -> Iterator[bytes]:
            yield from self._count(goal, context)
            return goal

        policy = "replace" if replace else "queue" if queue else "reject"
        self.service = self.node.action(ACTION, None, None, None, turn, policy=policy, queue=queue or None)

    def Call(self, servers: int) -> None:
        self.client = self.node.client(SERVICE)
        eventually("its servers are matched", lambda: self.client.server_count == servers)

    def _wire(self, count: int, then: str) -> bytes:
        return bytes([count, ["Return", "Fail", "Wait"].index(then)])

    def Begin(self, count: int, then: str, timeout_ms: int) -> None:
        self.calls.append(self.client.stream(self._wire(count, then), timeout=timeout_ms / 1000))

    def Hear(self, call: int) -> Any:
        words = []
        try:
            for reply in self.calls[call]:
                words.append(str(reply[0]))
            words.append("end")
        except rnet.RnetError as error:
            words.append(word_of(error))
        return said(*words)

    def Error(self, call: int) -> None:
        for _ in self.calls[call]:
            pass

    def Drop(self, call: int) -> None:
        self.calls[call] = None

    def Late(self) -> Any:
        stats = self.client.stats()
        return said(f"{stats.late} late, {stats.open} open")

    def Send(self, count: int, then: str) -> None:
        if self.action is None:
            self.action = self.node.action_client(ACTION)
        self.goals.append(self.action.send(self._wire(count, then), timeout=LONG_S))

    def Reach(self, goal: int) -> Any:
        words: list[str] = []
        try:
            result = self.goals[goal].result(timeout=LONG_S, on_feedback=lambda f: words.append(str(f[0])))
            words.append(f"reached {result[0]}")
        except rnet.RnetError as error:
            words.append(word_of(error))
        return said(*words)

    def CancelGoal(self, goal: int) -> None:
        self.goals[goal].cancel()

    def Served(self, **counts: int) -> None:
        def now() -> dict[str, int]:
            stats = self.service.stats()
            return {name: getattr(stats, name) for name in counts}

        eventually("the call counts match", lambda: now() == counts)

    def Obey(self, deadline_ms: int) -> None:
        self.command = self.node.command(
            COMMAND, None, lambda value: self.words.add(f"applied {value[0]}"), deadline=deadline_ms / 1000,
            fallback=lambda reason: self.words.add(f"fallback {reason}"),
        )

    def Take(self, priority: int, lease_ms: int) -> None:
        self.driver = self.node.drive(COMMAND, priority=priority, lease=lease_ms / 1000, timeout=LONG_S)

    def Drive(self, value: int) -> None:
        self.driver.send(bytes([value]))

    def Release(self) -> None:
        self.driver.release()

    def Holder(self, **given: str) -> None:
        eventually("the driver has authority", lambda: (self.command.driver or "") == given["is"])

    def Push(self, job: int) -> None:
        if self.pusher is None:
            self.pusher = self.node.push(
                QUEUE, on_undelivered=lambda back: self.words.add(f"back {back.job[0]} {word_of(back.error)}"),
            )
        self.pusher.push(bytes([job]))

    def Pull(self) -> None:
        self.puller = self.node.pull(QUEUE)

    def Job(self) -> Any:
        self.job = self.puller.recv(timeout=LONG_S)
        return said(f"job {self.job.message[0]}{' again' if self.job.redelivered else ''}")

    def Acknowledge(self) -> None:
        self.job.ack()

    def FailJob(self) -> None:
        self.job.fail(Jammed("no"))

    def JobsDone(self) -> Any:
        self.pusher.wait_until_done(timeout=LONG_S)
        stats = self.pusher.stats()
        return said(f"{stats.done} done, {stats.redelivered} again, {stats.undelivered} back")

    def Said(self, at_least: int) -> Any:
        return self.words.at_least(at_least)

    def Close(self) -> None:
        for endpoint in (self.service, self.command, self.puller):
            if endpoint is not None:
                endpoint.close()
        self.service = self.command = self.puller = None

    def Leave(self) -> None:
        self.calls.clear()
        self.goals.clear()
        for endpoint in (self.client, self.action, self.driver, self.pusher):
            if endpoint is not None:
                endpoint.close()
        self.client = self.action = self.driver = self.pusher = None


class Talks:
    def __init__(self, node: rnet.Node) -> None:
        self.node = node
        self.publisher: Any = None
        self.subscriber: Any = None
        self.log: Any = None

    def Publish(self, topic: str, will: int | None) -> None:
        last_will = None if will is None else bytes([will])
        self.publisher = self.node.publisher(topic, reliable=True, on_full="refuse", last_will=last_will)

    def Subscribe(self, topic: str) -> None:
        self.subscriber = self.node.subscriber(topic, reliable=True)

    def Meet(self) -> None:
        if self.publisher is not None:
            self.publisher.wait_for_subscribers(1, timeout=LONG_S)
        if self.subscriber is not None:
            self.subscriber.wait_for_publishers(1, timeout=LONG_S)

    def Say(self, value: int) -> None:
        self.publisher.send(bytes([value]))

    def Hear(self, count: int) -> Any:
        return said(*(str(bytes(self.subscriber.recv(timeout=LONG_S))[0]) for _ in range(count)))

    def HearToItsLoss(self) -> Any:
        words = []
        while True:
            try:
                sample = self.subscriber.recv(timeout=LONG_S)
                words.append(("will " if sample.last_will else "") + str(bytes(sample)[0]))
            except rnet.PeerLostError as error:
                return said(*words, f"lost {error.node}")
            except rnet.RnetError as error:
                return said(*words, str(error))

    def HearWhatIsLeft(self) -> Any:
        eventually("its publisher is gone", lambda: self.subscriber.publisher_count == 0)
        return said(*(str(bytes(sample)[0]) for sample in iter(self.subscriber.try_recv, None)))

    def Close(self) -> None:
        self.publisher.close()

    def Log(self, level: str, line: str) -> None:
        getattr(self.node.log, level)(line)

    def HearLog(self, count: int) -> Any:
        if self.log is None:
            self.log = self.node.subscriber("/log", Log, transient_local=True, keep_all=True)
        lines = [self.log.recv(timeout=LONG_S) for _ in range(count)]
        return said(*(f"{line.name} {Log.Level.Name(line.level).lower()} {line.message}" for line in lines))
