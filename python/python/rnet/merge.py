"""``rnet.Merge``: one wait for many topics."""

from __future__ import annotations

import contextlib
import time
import warnings
from collections.abc import Iterable
from typing import Any, final

from ._rnet import Subscriber, WaitSet
from .errors import (
    BadValueError,
    ClosedError,
    DetachedError,
    IncompatibleQosError,
    IncompatibleTypeError,
    MalformedError,
    IncompatiblePublishersWarning,
    PeerLostError,
    RnetError,
)

__all__ = ["Merge"]


@final
class Merge:
    """Receives from several subscribers of one node, in turn, with one wait for all.

    `for subscriber, message in Merge(a, b)` runs until all are closed.

    >>> imu, stop = node.subscriber("/imu"), node.subscriber("/stop")
    >>> button = node.publisher("/stop")
    >>> button.wait_for_subscribers()
    >>> button.send(b"now")
    >>> ready, message = rnet.Merge(imu, stop).recv(timeout=10)
    >>> ready.topic, bytes(message)
    ('/stop', b'now')
    """

    __module__ = "rnet"

    def __init__(self, *subscribers: Subscriber[Any]) -> None:
        if not subscribers:
            raise _bad("it needs at least one subscriber")
        for subscriber in subscribers:
            if not isinstance(subscriber, Subscriber):
                raise TypeError(f"Merge takes subscribers, not a {type(subscriber).__name__}")
        if len(set(map(id, subscribers))) < len(subscribers):
            raise _bad("a subscriber is listed twice: pass each once")
        #: The subscribers.
        self.subscribers = subscribers
        self._set = WaitSet._of(subscribers[0])
        for subscriber in subscribers:
            try:
                self._set.attach(subscriber)
            except BadValueError:
                raise _bad("all subscribers must belong to one node") from None
        #: Index of the subscriber to check first, so that a busy topic does not hide others.
        self._turn = 0

    def recv(self, *, timeout: float | None = None) -> tuple[Subscriber[Any], Any]:
        """Waits for the next message of any subscriber: `subscriber, message = merge.recv()`."""
        if timeout is not None and not timeout >= 0:
            # Rejects an invalid time-out, whether or not a message is available.
            self._set._wait(timeout, timeout)
        until, left = None if timeout is None else time.monotonic() + timeout, timeout
        while (found := self._try_recv()) is None:
            self._set._wait(left, timeout)
            if until is not None:
                # Another thread may take the message first.
                left = max(0.0, until - time.monotonic())
        return found

    def _try_recv(self) -> tuple[Subscriber[Any], Any] | None:
        closed: ClosedError | None = None
        is_open = False
        first = self._turn
        for step in range(len(self.subscribers)):
            at = (first + step) % len(self.subscribers)
            subscriber = self.subscribers[at]
            # Also if this one raises: malformed messages of one topic do not hide other topics.
            self._turn = at + 1
            try:
                message = subscriber.try_recv()
            except ClosedError as error:
                closed = error
                # A closed subscriber would end each wait. Another thread may have detached it.
                with contextlib.suppress(BadValueError, ClosedError):
                    self._set.detach(subscriber)
                continue
            is_open = True
            if message is not None:
                return subscriber, message
        if closed is not None and not is_open:
            raise closed
        return None

    def __iter__(self) -> Merge:
        return self

    def __next__(self) -> tuple[Subscriber[Any], Any]:
        while True:
            try:
                return self.recv()
            except ClosedError:
                raise StopIteration from None
            except RnetError as error:
                skip_error(self.subscribers, error, stacklevel=3)


def skip_error(subscribers: Iterable[Subscriber[Any]], error: BaseException, stacklevel: int = 2) -> None:
    """Lets an iteration continue after an error of a single publisher, which is counted, or reported by
    ``on_match`` and the tools. Raises any other error.

    Warns if the topic has no connected publisher.
    """
    if isinstance(error, (PeerLostError, DetachedError, MalformedError)):
        return
    if not isinstance(error, (IncompatibleTypeError, IncompatibleQosError)):
        raise error
    # A subscriber that is closed meanwhile ends the iteration.
    with contextlib.suppress(ClosedError):
        of_topic = [subscriber for subscriber in subscribers if subscriber.topic == error.topic]
        if not any(of.connected for subscriber in of_topic for of in subscriber.stats()):
            warnings.warn(str(error), IncompatiblePublishersWarning, stacklevel)


def _bad(why: str) -> BadValueError:
    return BadValueError(f"bad value for Merge: {why}", what="Merge", why=why)
