"""``Node.call``: one call by a cached client of the node, because opening one takes longer than a call."""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

from . import _rnet

__all__ = ["call"]

#: Clients that a node caches. Beyond this number, the least recently used one is dropped.
MAX_CACHED_CLIENTS = 64

#: For each node, by service, request type and reply type. The most recently used one is last.
_kept: WeakKeyDictionary[_rnet.Node, dict[Any, _rnet.Client[Any, Any]]] = WeakKeyDictionary()


def call(self: _rnet.Node, name: str, request: Any, /, reply: Any = None, *, timeout: float | None = None) -> Any:
    """Calls a service once, with a client that the node caches, and returns the reply, of type `reply`, None for bytes.
    The type of the request is its class; objects with the buffer protocol are bytes. `timeout` is in seconds, 10 by
    default. Errors are those of `Client.call`.
    """
    from .calls import type_of  # Programs without calls do not need it.

    return _client(self, name, type_of(request), reply).call(request, timeout=timeout)


def _client(node: _rnet.Node, name: str, request: Any, reply: Any) -> _rnet.Client[Any, Any]:
    # A numpy type may be a list.
    key = (name, request, repr(reply) if isinstance(reply, list) else reply)
    kept = _kept.setdefault(node, {})
    # Each step is atomic for other threads: in the worst case two of them open a client.
    client = kept.pop(key, None)
    if client is None or client.closed:
        client = node.client(name, request, reply)
    kept[key] = client
    for oldest in list(kept)[:-MAX_CACHED_CLIENTS]:
        kept.pop(oldest, None)
    return client


def start(self: Any, request: Any, /, *, timeout: float | None = None, key: str | None = None) -> Any:
    """Starts a call with one reply, and returns a Call: `await` it, or call its `result`. Arguments and errors are
    those of `call`; the Call raises the errors.
    """
    return self._begin(request, timeout, key, False)


def stream(self: Any, request: Any, /, *, timeout: float | None = None, key: str | None = None) -> Any:
    """Starts a call with any number of replies, and returns a Call, to be iterated with `for` or `async for`.
    `timeout` applies to the whole call, from now until the last reply.
    """
    return self._begin(request, timeout, key, True)


setattr(_rnet.Node, "call", call)
setattr(_rnet.Client, "start", start)
setattr(_rnet.Client, "stream", stream)
