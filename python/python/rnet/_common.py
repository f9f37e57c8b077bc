"""Methods that several classes of the extension share: PyO3 gives each class only methods of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import _rnet as ext
from .errors import ClosedError
from .event_loop import run_in_thread


def enter(self: Any) -> Any:
    return self


def exit_(self: Any, *exception: Any) -> None:
    end(self.close, exception)


def cancel_exit(self: Any, *exception: Any) -> None:
    end(self.cancel, exception)


def end(close: Callable[[], None], exception: tuple[Any, ...]) -> None:
    """Closes at the end of a ``with`` block; if that ends the program, waits no longer than its exit does."""
    cls = exception[0] if exception else None
    if cls is not None and issubclass(cls, (KeyboardInterrupt, SystemExit)):
        ext.close_in_time(close)
    else:
        close()


async def aenter(self: Any) -> Any:
    return self.__enter__()


async def aexit_at_once(self: Any, *exception: Any) -> Any:
    return self.__exit__(*exception)


async def aexit_in_thread(self: Any, *exception: Any) -> None:
    """As `__exit__`, which may wait for handlers and callbacks that the event loop of this task runs."""
    await run_in_thread(lambda: self.__exit__(*exception))


def iter_(self: Any) -> Any:
    return self


def next_(self: Any) -> Any:
    try:
        return self.recv()
    except ClosedError:
        if self.closed:
            raise StopIteration from None
        raise


def class_getitem(cls: type, _item: object) -> type:
    # Type checkers read `Publisher[T]`.
    return cls


CLOSED_AT_EXIT = (
    ext.ActionClient,
    ext.Client,
    ext.Command,
    ext.Driver,
    ext.Node,
    ext.Publisher,
    ext.Puller,
    ext.Pusher,
    ext.Replica,
    ext.Service,
    ext.Subscriber,
    ext.Watch,
)
CANCELLED_AT_EXIT = (ext.CallbackHandle, ext.Timer)
ENTERED = (*CLOSED_AT_EXIT, *CANCELLED_AT_EXIT, ext.Call, ext.Goal, ext.Transaction)
LEFT_AT_ONCE = (ext.Call, ext.Goal, ext.Job, ext.Loan)
LEFT_IN_THREAD = (*CLOSED_AT_EXIT, *CANCELLED_AT_EXIT, ext.Transaction)
ITERATORS_FOR_ASYNC = (ext.Call, ext.Goal, ext.Puller, ext.Samples, ext.Subscriber, ext.Watch)
ITERATORS = (*ITERATORS_FOR_ASYNC, ext.Rate, ext.Replica)
GENERIC = (
    ext.ActionClient,
    ext.Call,
    ext.Client,
    ext.Command,
    ext.Driver,
    ext.Goal,
    ext.Job,
    ext.Publisher,
    ext.Puller,
    ext.Pusher,
    ext.Subscriber,
)

for name, method, classes in (
    ("__enter__", enter, ENTERED),
    ("__exit__", exit_, CLOSED_AT_EXIT),
    ("__exit__", cancel_exit, CANCELLED_AT_EXIT),
    ("__aenter__", aenter, (*LEFT_AT_ONCE, *LEFT_IN_THREAD)),
    ("__aexit__", aexit_at_once, LEFT_AT_ONCE),
    ("__aexit__", aexit_in_thread, LEFT_IN_THREAD),
    ("__iter__", iter_, ITERATORS),
    ("__next__", next_, (ext.Puller, ext.Replica, ext.Watch)),
    ("__aiter__", iter_, ITERATORS_FOR_ASYNC),
    ("__class_getitem__", classmethod(class_getitem), GENERIC),
):
    for one in classes:
        setattr(one, name, method)

_doc = "The current value; assign to it to set the parameter."
setattr(ext.Param, "value", property(ext.Param.get, ext.Param.set, doc=_doc))
