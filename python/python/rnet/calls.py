"""Handlers of services, and the types of requests."""

from __future__ import annotations

import ctypes
import inspect
from collections.abc import Callable, Generator
from typing import Any

from . import pools
from .event_loop import is_async

__all__ = ["takes_context", "check_takes_one", "type_of", "run_action_generator"]


def takes_context(handler: Callable[..., Any]) -> bool:
    """Whether a handler takes a CallContext as a second parameter.

    Raises TypeError for an object that cannot be a handler.
    """
    try:
        signature = inspect.signature(handler)
    except ValueError:
        # A builtin without a signature gets only the request.
        return False
    for arguments in (1, 2):
        try:
            signature.bind(*range(arguments))
        except TypeError:
            continue
        return arguments == 2
    raise TypeError(f"{handler!r} takes neither (request) nor (request, context)")


def check_takes_one(function: Callable[..., Any], what: str) -> None:
    """Raises TypeError for an object that cannot be called with only ``what``."""
    if is_async(function):
        raise TypeError(
            f"{function!r} is async: a command would wait for the event loop and move the robot late. Pass "
            "a plain function; or forward the commands to a topic (forward=) and subscribe to it with the "
            "async function"
        )
    if inspect.isclass(function):
        raise TypeError(f"{function!r} is a class: pass a function that takes ({what})")
    try:
        signature = inspect.signature(function)
    except ValueError:
        # A builtin without a signature.
        return
    try:
        signature.bind(None)
    except TypeError:
        raise TypeError(f"{function!r} does not take ({what})") from None


def run_action_generator(work: Generator[Any, None, Any], feedback: Callable[[Any, Any], None], context: Any) -> Any:
    """The result of a generator that yields feedback; closed at a ``yield`` if its goal is cancelled."""
    try:
        while True:
            # If the goal was cancelled, this raises CallCancelledError.
            feedback(context, next(work))
    except StopIteration as stop:
        return stop.value
    finally:
        work.close()


def type_of(request: Any) -> Any:
    """The message type of an object: its class, the dtype of a numpy structure, None for bytes."""
    cls = type(request)
    if pools.is_message_class(cls) or hasattr(cls, "__rnet_codec__") or isinstance(request, ctypes.Structure):
        return cls
    dtype = getattr(request, "dtype", None)
    return dtype if getattr(dtype, "names", None) else None
