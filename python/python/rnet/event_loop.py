"""Callbacks and handlers that are ``async def``: the event loop in which they were registered runs them."""

from __future__ import annotations

import contextlib
import inspect
import threading
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from typing import TYPE_CHECKING, Any

from . import _rnet
from .errors import CallCancelledError, ClosedError, DetachedError, PeerLostError, RnetError

if TYPE_CHECKING:
    import asyncio

__all__ = ["LoopCallback", "LoopHandler", "deliver", "for_handler", "for_threads", "is_async", "run_in_thread"]

#: Seconds between two checks whether a call with a running coroutine is still wanted.
_PAUSE_S = 0.02

#: Pause in seconds between errors of a subscriber that follow each other immediately.
_ERROR_PAUSE_S = 0.1

#: The event loop keeps no strong reference to its tasks.
_deliveries: set[asyncio.Task[None]] = set()


def is_async(callback: Callable[..., Any]) -> bool:
    """Whether a callback is an ``async def``, or an object whose ``__call__`` is one.

    Raises TypeError for an ``async def`` that yields.
    """
    if _is_any(inspect.isasyncgenfunction, callback):
        raise TypeError(f"{callback!r} is an async generator, which only a service handler may be")
    return _is_any(inspect.iscoroutinefunction, callback)


def _is_any(is_one: Callable[[Any], bool], function: Callable[..., Any]) -> bool:
    return is_one(function) or is_one(getattr(type(function), "__call__", None))


def _running_loop(callback: Callable[..., Any]) -> asyncio.AbstractEventLoop:
    import asyncio  # Programs without coroutines do not need it.

    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        raise TypeError(
            f"{callback!r} is async, but this thread does not run an event loop: register it in a "
            "coroutine, whose loop then runs it, or pass a plain function"
        ) from None


def for_threads(callback: Callable[..., Any], max_pending: int | None) -> Callable[..., Any]:
    """The function that threads of robot-net call; ``max_pending`` is that of :class:`LoopCallback`."""
    return LoopCallback(callback, max_pending) if is_async(callback) else callback


async def run_in_thread(work: Callable[[], object]) -> None:
    """Runs a blocking function on a separate thread; the event loop runs handlers and callbacks meanwhile.

    The default executor of the loop is not used: threads that wait for a message may occupy all of it. If the
    task is cancelled, the work continues.
    """
    import asyncio

    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()

    def finish(error: BaseException | None) -> None:
        if done.cancelled():
            return
        if error is None:
            done.set_result(None)
        else:
            done.set_exception(error)

    def run() -> None:
        error = None
        try:
            work()
        except BaseException as raised:
            error = raised
        # The loop is closed if its task was cancelled.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(finish, error)

    threading.Thread(target=run, name="rnet-close", daemon=True).start()
    await done


class LoopCallback:
    """Runs a coroutine function on an event loop, one call after the other.

    The last ``max_pending`` calls wait for the loop, or all if it is None; older ones are skipped.
    """

    def __init__(self, function: Callable[..., Awaitable[Any]], max_pending: int | None) -> None:
        self._function = function
        self._loop = _running_loop(function)
        #: Arguments, and the exception counter of the node whose thread made the call.
        self._pending: deque[tuple[tuple[Any, ...], object]] = deque(maxlen=max_pending)
        self._task: asyncio.Task[None] | None = None
        #: Number of skipped calls.
        self.skipped = 0
        #: Whether no further call may begin.
        self.is_over: Callable[[], bool] = lambda: False

    @property
    def is_busy(self) -> bool:
        """Whether a call runs or waits, and the loop is not closed."""
        return not self._loop.is_closed() and (self._task is not None or bool(self._pending))

    def __call__(self, *arguments: Any) -> None:
        """Schedules a call; returns at once."""
        if len(self._pending) == self._pending.maxlen:
            self.skipped += 1
        self._pending.append((arguments, _rnet.error_counter()))
        try:
            self._loop.call_soon_threadsafe(self._start)
        except RuntimeError:
            # The loop is closed: its program has ended, or is about to end.
            self._pending.clear()

    def _start(self) -> None:
        if self._task is None and self._pending:
            self._task = self._loop.create_task(self._run())
            self._task.add_done_callback(self._end)

    async def _run(self) -> None:
        try:
            while self._pending and not self.is_over():
                arguments, counter = self._pending.popleft()
                await _reported(counter, self._function, *arguments)
        finally:
            self._task = None

    def _end(self, task: asyncio.Task[None]) -> None:
        if self._task is task:
            # The task was cancelled before its first step, so its call is still pending.
            self._task = None
            self._start()

    def __repr__(self) -> str:
        return f"<callback {self._function!r} on an event loop>"


async def _reported(counter: object, function: Callable[..., Any], *arguments: Any) -> None:
    """Calls a function, plain or async; its exceptions are counted and reported."""
    import asyncio

    try:
        returned = function(*arguments)
        if inspect.isawaitable(returned):
            await returned
    except asyncio.CancelledError as error:
        # The awaited object was cancelled, unless this task was. Python 3.10 cannot distinguish the two.
        task = asyncio.current_task()
        if getattr(task, "cancelling", lambda: 1)():
            raise
        _rnet.report_exception(error, function, counter)
    except Exception as error:
        _rnet.report_exception(error, function, counter)


def deliver(
    source: Any,
    callback: Callable[[Any], Awaitable[Any]],
    on_error: Callable[[RnetError], Any] | None,
    counter: object,
) -> None:
    """Calls ``callback`` in a task with each message of a Subscriber, or change of a Watch, until that is closed.

    The task does not keep its node. At its end it closes its source, which has no other reader.
    """

    def end(task: asyncio.Task[None]) -> None:
        _deliveries.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None:
            _rnet.report_exception(error, callback, counter)
        delivery.close()

    loop = _running_loop(callback)
    delivery = source._begin_delivery()
    task = loop.create_task(_deliver(delivery, callback, on_error, counter))
    _deliveries.add(task)
    task.add_done_callback(end)


async def _deliver(
    delivery: Any,
    callback: Callable[[Any], Awaitable[Any]],
    on_error: Callable[[RnetError], Any] | None,
    counter: object,
) -> None:
    import asyncio

    pause_s = 0.0
    while True:
        try:
            received = await delivery.recv_async()
        except ClosedError:
            return
        except RnetError as error:
            if on_error is not None:
                await _reported(counter, on_error, error)
            elif not isinstance(error, (PeerLostError, DetachedError)):
                # The error comes from the topic and not from the callback.
                _rnet.report_exception(error, callback, None)
            # An error that repeats immediately must not block the loop.
            await asyncio.sleep(pause_s)
            pause_s = _ERROR_PAUSE_S
            continue
        pause_s = 0.0
        await _reported(counter, callback, received)


def for_handler(handler: Callable[..., Any], kind: str) -> tuple[Callable[..., Any], bool]:
    """The function that threads of a server call for a handler, and whether it also gets a context.

    ``kind`` is "service", "action" or "job". Raises TypeError for an object that cannot be such a handler.
    """
    from .calls import takes_context

    with_context = takes_context(handler)
    yields = inspect.isgeneratorfunction(handler) or _is_any(inspect.isasyncgenfunction, handler)
    if yields and kind == "job":
        raise TypeError(f"{handler!r} yields, but a job has no replies: pass a function without yield")
    if _is_any(inspect.isasyncgenfunction, handler):
        if kind == "action":
            raise TypeError(
                f"{handler!r} is an async generator, which cannot return a result: pass an async def that "
                "sends feedback with context.feedback"
            )
    elif not is_async(handler):
        return handler, with_context
    return LoopHandler(handler, with_context, kind), True


class LoopHandler:
    """Runs a coroutine function on an event loop for the threads of a server, which wait for its result.

    A call that is no longer wanted cancels its coroutine. A service that closes waits for its coroutines, as for
    its threads, except for streams and goals, which it cancels. If the thread of the loop itself closes it, it
    cannot wait, and cancels all of them.
    """

    def __init__(self, function: Callable[..., Any], with_context: bool, kind: str) -> None:
        self._function = function
        self._with_context = with_context
        self._loop = _running_loop(function)
        self._thread = threading.get_ident()
        self._yields = _is_any(inspect.isasyncgenfunction, function)
        #: A job runs to its end even if its pusher no longer waits for it.
        self._cancels = kind != "job"
        self._cancels_at_close = kind == "action" or self._yields
        self.__qualname__ = getattr(function, "__qualname__", repr(function))

    def __call__(self, request: Any, context: Any) -> Any:
        """Waits for the result of the function; for an async generator, returns a generator of its items."""
        returned = self._function(request, context) if self._with_context else self._function(request)
        return self._replies(returned, context) if self._yields else self._wait(returned, context)

    def _replies(self, replies: AsyncGenerator[Any, None], context: Any) -> Generator[Any, None, None]:
        try:
            while (reply := self._wait(_next_of(replies), context)) is not None:
                yield reply[0]
        finally:
            # Closed at a `yield`: its `finally` blocks run.
            self._wait(replies.aclose(), context, cancels=False)

    def _wait(self, work: Awaitable[Any], context: Any, cancels: bool = True) -> Any:
        running = _LoopTask(self._loop, work)
        is_cancelled = False
        while not running.wait(_PAUSE_S):
            if self._loop.is_closed():
                raise ClosedError(f"the event loop of {self.__qualname__} is closed", what="the event loop")
            reason = context._peek_reason()
            if reason is None:
                continue
            may_cancel = self._cancels_at_close if reason == "server_closing" else self._cancels
            is_stuck = not self._loop.is_running() or _rnet.is_closing(self._thread)
            if is_stuck or (cancels and may_cancel and not is_cancelled):
                # From here on, the handler counts as informed.
                is_cancelled = bool(context.cancelled)
                running.cancel()
            if is_stuck:
                raise CallCancelledError(f"{self.__qualname__} cannot continue: its event loop is closing the server", reason=reason)
        return running.result(context._peek_reason() if is_cancelled else None)

    def __repr__(self) -> str:
        return f"<handler {self._function!r} on an event loop>"


async def _next_of(replies: AsyncGenerator[Any, None]) -> tuple[Any] | None:
    try:
        return (await replies.__anext__(),)
    except StopAsyncIteration:
        return None


async def _awaited(work: Awaitable[Any]) -> Any:
    return await work


class _LoopTask:
    """A task of an event loop that a thread waits for."""

    def __init__(self, loop: asyncio.AbstractEventLoop, work: Awaitable[Any]) -> None:
        self._loop, self._work = loop, work
        self._task: asyncio.Task[Any] | None = None
        self._ended = threading.Event()
        self._call(self._start)

    def _call(self, function: Callable[[], None]) -> None:
        try:
            self._loop.call_soon_threadsafe(function)
        except RuntimeError:
            # The loop is closed; `LoopHandler` detects that.
            if self._task is None and inspect.iscoroutine(self._work):
                self._work.close()

    def _start(self) -> None:
        self._task = self._loop.create_task(_awaited(self._work))
        self._task.add_done_callback(lambda _: self._ended.set())

    def wait(self, limit_s: float) -> bool:
        """Waits up to this time; returns whether it has ended."""
        return self._ended.wait(limit_s)

    def cancel(self) -> None:
        def cancel() -> None:
            if self._task is not None:
                self._task.cancel()

        self._call(cancel)

    def result(self, reason: str | None) -> Any:
        """Its result or exception; ``reason`` is the reason if it was cancelled."""
        assert self._task is not None
        if not self._task.cancelled():
            return self._task.result()
        if reason is None:
            raise RuntimeError(
                "the task of the handler was cancelled, as asyncio.run does with all tasks at its end"
            )
        raise CallCancelledError(f"the call was cancelled ({reason})", reason=reason)
