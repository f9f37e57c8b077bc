"""``help(rnet)``: every public name is documented, and the examples of the main classes run."""

from __future__ import annotations

import doctest
import inspect
import queue
from collections.abc import Callable, Iterator

import pytest
import rnet

WITH_EXAMPLE = [
    rnet.Call,
    rnet.Client,
    rnet.Loan,
    rnet.log.LogHandler,
    rnet.log.Logger,
    rnet.Merge,
    rnet.Node,
    rnet.Param,
    rnet.Publisher,
    rnet.Rate,
    rnet.RnetError,
    rnet.Sample,
    rnet.Service,
    rnet.State,
    rnet.Subscriber,
    rnet.Timer,
    rnet.state.Transaction,
    rnet.WaitSet,
    rnet.state.Watch,
]


MODULES = [rnet, rnet.errors, rnet.events, rnet.launching, rnet.log, rnet.recording, rnet.state, rnet.types]


def public() -> Iterator[tuple[str, str | None]]:
    """The public callables and their members, with their doc strings."""
    for module in MODULES:
        for name in module.__all__:
            value = getattr(module, name)
            if not (callable(value) or inspect.ismodule(value)):
                continue
            yield f"{module.__name__}.{name}", value.__doc__
            if not inspect.isclass(value):
                continue
            for member, inside in vars(value).items():
                # The text of a NamedTuple describes its fields.
                if not member.startswith("_") and not hasattr(value, "_fields"):
                    function = getattr(inside, "__func__", inside)
                    if callable(function) or inspect.isdatadescriptor(function):
                        yield f"{module.__name__}.{name}.{member}", function.__doc__


def test_everything_public_says_what_it_is() -> None:
    found = dict(public())
    assert len(found) > 200
    assert [name for name, text in found.items() if not (text or "").strip()] == []


@pytest.mark.parametrize("kind", WITH_EXAMPLE, ids=lambda kind: kind.__name__)
def test_the_example_runs(kind: type, node: Callable[..., rnet.Node]) -> None:
    names = {"rnet": rnet, "queue": queue, "node": node("help")}
    example = doctest.DocTestParser().get_doctest(inspect.getdoc(kind), names, kind.__name__, None, None)
    assert example.examples
    said: list[str] = []
    failed, _ = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(example, out=said.append)
    assert failed == 0, "".join(said)
