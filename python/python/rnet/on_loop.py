"""Callbacks that are ``async def``: tasks of the event loop in which they were registered run them."""

from __future__ import annotations

import inspect
from collections import deque
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar

from . import _rnet
from .errors import Closed, Conflict, Detached, PeerLost, RnetError

if TYPE_CHECKING:
    import asyncio

    from . import State, Subscriber, Transaction, Watch

__all__ = ["LoopCallback", "deliver", "for_threads", "is_async", "transact"]

_R = TypeVar("_R")

#: The event loop keeps no strong reference to its tasks.
_deliveries: set[asyncio.Task[None]] = set()


def is_async(callback: Callable[..., Any]) -> bool:
    """Whether a callback is an ``async def``, or an object whose ``__call__`` is one."""
    if inspect.iscoroutinefunction(callback):
        return True
    return inspect.iscoroutinefunction(getattr(type(callback), "__call__", None))


def _running_loop(callback: Callable[..., Any]) -> asyncio.AbstractEventLoop:
    import asyncio  # Programs without coroutines do without it.

    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        raise TypeError(
            f"{callback!r} is async, and no event loop runs in this thread: register it in a coroutine, "
            "whose loop then runs it, or give a plain function"
        ) from None


def for_threads(callback: Callable[..., Any], max_pending: int | None) -> Callable[..., Any]:
    """What threads of robot-net call; ``max_pending`` is that of :class:`LoopCallback`."""
    return LoopCallback(callback, max_pending) if is_async(callback) else callback


class LoopCallback:
    """Has an event loop run a coroutine function, one call after the other.

    The last ``max_pending`` calls wait for the loop, or all if that is None; older ones are skipped.
    """

    def __init__(self, function: Callable[..., Awaitable[Any]], max_pending: int | None) -> None:
        self._function = function
        self._loop = _running_loop(function)
        self._pending: deque[tuple[Any, ...]] = deque(maxlen=max_pending)
        self._task: asyncio.Task[None] | None = None
        #: Calls that were skipped.
        self.skipped = 0
        #: Whether no further call may begin.
        self.is_over: Callable[[], bool] = lambda: False

    @property
    def is_busy(self) -> bool:
        """Whether a call runs or waits, of a loop that is not closed."""
        return not self._loop.is_closed() and (self._task is not None or bool(self._pending))

    def __call__(self, *arguments: Any) -> None:
        """Have it called; returns at once."""
        if len(self._pending) == self._pending.maxlen:
            self.skipped += 1
        self._pending.append(arguments)
        try:
            self._loop.call_soon_threadsafe(self._start)
        except RuntimeError:
            # The loop is closed: its program has ended, or is about to.
            self._pending.clear()

    def _start(self) -> None:
        if self._task is None and self._pending:
            self._task = self._loop.create_task(self._run())

    async def _run(self) -> None:
        try:
            while self._pending and not self.is_over():
                await _reported(self._function, *self._pending.popleft())
        finally:
            self._task = None

    def __repr__(self) -> str:
        return f"<callback {self._function!r} on an event loop>"


async def _reported(function: Callable[..., Any], *arguments: Any) -> None:
    """Call a function, plain or async; what it raises is reported."""
    try:
        returned = function(*arguments)
        if inspect.isawaitable(returned):
            await returned
    except Exception as error:
        _rnet.report_exception(error, function)


def deliver(
    source: Subscriber[Any] | Watch,
    callback: Callable[[Any], Awaitable[Any]],
    on_error: Callable[[RnetError], Any] | None,
) -> None:
    """Have a task call ``callback`` with each message of a subscriber, or change of a watch, until that is closed."""
    task = _running_loop(callback).create_task(_deliver(source, callback, on_error))
    _deliveries.add(task)
    task.add_done_callback(_deliveries.discard)


async def _deliver(
    source: Subscriber[Any] | Watch,
    callback: Callable[[Any], Awaitable[Any]],
    on_error: Callable[[RnetError], Any] | None,
) -> None:
    import asyncio

    while True:
        try:
            received = await source.recv_async()
        except Closed:
            return
        except RnetError as error:
            if on_error is not None:
                await _reported(on_error, error)
            elif not isinstance(error, (PeerLost, Detached)):
                _rnet.report_exception(error, callback)
            # An error that comes again at once must not keep the loop.
            await asyncio.sleep(0)
            continue
        await _reported(callback, received)


async def transact(
    state: State, body: Callable[[Transaction], Awaitable[_R]], max_tries: int, outrun: RnetError
) -> _R:
    """``State.transact`` with an ``async def``; raises ``outrun`` if others were faster each time."""
    for _ in range(max_tries):
        transaction = state.transaction()
        try:
            returned = await body(transaction)
            transaction.commit()
        except Conflict:
            continue
        finally:
            transaction.discard()
        return returned
    raise outrun
