"""Methods that several classes of the extension share: PyO3 gives each class only methods of its own."""

from __future__ import annotations

from typing import Any

from . import _rnet as ext


def enter(self: Any) -> Any:
    return self


def exit_(self: Any, *_exception: object) -> None:
    self.close()


def iter_(self: Any) -> Any:
    return self


def class_getitem(cls: type, _item: object) -> type:
    # `Publisher[T]` is for type checkers.
    return cls


CLOSED_AT_EXIT = (
    ext.ActionClient,
    ext.Client,
    ext.Driver,
    ext.Publisher,
    ext.Puller,
    ext.Replica,
)
ENTERED = (
    *CLOSED_AT_EXIT,
    ext.Call,
    ext.CallbackHandle,
    ext.Command,
    ext.Goal,
    ext.Node,
    ext.Pusher,
    ext.Service,
    ext.Subscriber,
    ext.Timer,
    ext.Transaction,
    ext.Watch,
)
ITERATORS_FOR_ASYNC = (ext.Call, ext.Goal, ext.Puller, ext.Samples, ext.Subscriber, ext.Watch)
ITERATORS = (*ITERATORS_FOR_ASYNC, ext.Merge, ext.Rate, ext.Replica)
GENERIC = (
    ext.ActionClient,
    ext.Call,
    ext.Client,
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
    ("__iter__", iter_, ITERATORS),
    ("__aiter__", iter_, ITERATORS_FOR_ASYNC),
    ("__class_getitem__", classmethod(class_getitem), GENERIC),
):
    for one in classes:
        setattr(one, name, method)
