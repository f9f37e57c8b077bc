"""Parameters: declared in Python, set from anywhere, checked at the setter."""

from __future__ import annotations

import os
import queue
import subprocess
import sys
import threading
import warnings
import weakref
from collections.abc import Callable
from typing import Any

import pytest
import rnet

from conftest import LIMIT_S

Make = Callable[..., rnet.Node]


def gain(node: rnet.Node, **said: Any) -> rnet.Param[float]:
    return node.param("/gain", **{"default": 1.0, "min": 0, "max": 10, "unit": "1/s", **said})


def test_a_parameter_is_its_default_until_somebody_sets_it(node: Make) -> None:
    arm = node("arm")
    param = gain(arm, description="how hard it pulls")
    assert param.get() == param.value == 1.0
    assert (param.name, param.key, param.type) == ("/gain", "/params/arm/gain", "float")
    assert "/gain of /arm" in repr(param)
    param.set(2.5)
    assert arm.state["/params/arm/gain"] == 2.5
    node("other").state["/params/arm/gain"] = 3.5
    assert param.get() == 3.5
    # A float parameter accepts an int.
    param.value = 4
    assert isinstance(param.value, float) and param.value == 4.0
    param.reset()
    assert param.get() == 1.0 and arm.state["/params/arm/gain"] == 1.0
    # Deleting the key also resets it to its default.
    param.set(7.0)
    del arm.state["/params/arm/gain"]
    assert param.get() == 1.0


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (10.5, "above its maximum 10.0 1/s"),
        (-1, "below its minimum 0.0 1/s"),
        (float("nan"), "not a number"),
        ("3", "is str, but the parameter is float"),
        (True, "is bool, but the parameter is float"),
        ([1.0], r"is list\[float\], but the parameter is float"),
    ],
)
def test_what_does_not_fit_is_refused_at_the_setter(node: Make, value: Any, why: str) -> None:
    param = gain(node("arm"))
    with pytest.raises(rnet.errors.BadValueError, match=why):
        param.set(value)
    assert param.get() == 1.0


def test_it_is_refused_to_everybody_and_by_every_way(node: Make) -> None:
    param = gain(node("arm"))
    state = node("other").state
    key = param.key
    ways: list[Callable[[], object]] = [
        lambda: state.__setitem__(key, 11.0),
        lambda: state.set(key, 11.0),
        lambda: state.set(key, "fast", change_type=True),
        lambda: state.compare_and_set(key, state.entry(key).revision, 11.0),
        lambda: state.update(key, lambda value: 11.0),
        lambda: state.set(key, 2.0, last_will=rnet.state.DELETE),
        lambda: state.set(key, 2.0, durable=True),
    ]
    for number, way in enumerate(ways):
        with pytest.raises(rnet.errors.BadValueError, match="parameter /gain of /arm"):
            way()
        assert param.get() == 1.0, number
    with pytest.raises(rnet.errors.BadValueError, match="above its maximum"), state.transaction() as t:
        t["/x"] = 1
        t[key] = 11.0
    assert "/x" not in state and param.get() == 1.0


def test_each_type(node: Make) -> None:
    arm = node("arm")
    cases: list[tuple[str, Any, Any, Any]] = [
        ("flag", True, False, 1),
        ("count", 3, -4, 1.5),
        ("text", "idle", "run", 3),
        ("flags", [True], [False, True], [1]),
        ("counts", [1, 2], [], [1.5]),
        ("numbers", [1.0, 2], [0.5], ["a"]),
        ("texts", ["a"], ["b", "c"], [1]),
    ]
    for name, default, other, wrong in cases:
        param = arm.param(name, default=default)
        assert param.get() == default and type(param.get()) is type(default), name
        param.set(other)
        assert param.get() == other, name
        with pytest.raises(rnet.errors.BadValueError):
            param.set(wrong)
        assert param.get() == other, name
    assert arm.param("later", type=float, default=2).get() == 2.0
    assert arm.param("empty", type=list[str], default=[]).type == "list[str]"
    assert arm.param("named", type="list[int]", default=[1]).type == "list[int]"
    mode = arm.param("mode", default="idle", choices=["idle", "run"])
    with pytest.raises(rnet.errors.BadValueError, match="not one of its choices: idle, run"):
        mode.set("fly")


def test_a_declaration_that_makes_no_sense(node: Make) -> None:
    arm = node("arm")
    for said, why in [
        ({"default": 1.0, "min": 2.0}, "its default 1.0 is below its minimum 2.0"),
        ({"default": 1.0, "min": 2.0, "max": 1.0}, "its minimum 2.0 is above its maximum 1.0"),
        ({"default": True, "max": 1}, "a maximum is for numbers"),
        ({"default": 1, "choices": ["a"]}, "choices are for text"),
        ({"default": 1, "max": 2.5}, "its maximum 2.5 is not of type int"),
        ({"default": []}, "its default is an empty list"),
        ({"default": 1 << 70}, "64 bits"),
        ({"default": "\ud800"}, "surrogate"),
        ({}, "neither a type nor a default"),
        ({"type": float}, "no default and no value"),
        ({"type": complex}, "complex is not a parameter type: use bool, int, float, str"),
    ]:
        with pytest.raises(rnet.errors.BadValueError, match=why):
            arm.param("/p", **said)  # type: ignore[call-overload]
    with pytest.raises(rnet.errors.BadNameError, match="bad parameter name"):
        arm.param("/a b", default=1)
    for wrong in [{}, object(), b"x", None]:
        with pytest.raises(TypeError):
            arm.param("/q", default=1).set(wrong)  # type: ignore[arg-type]
    # None of these has an effect.
    assert arm.state.keys("/params/arm") == ["/params/arm/q"]


def test_a_value_that_does_not_fit_any_more_is_told(node: Make) -> None:
    with rnet.Node("arm") as arm:
        gain(arm).set(7.5)
    again = node("arm")
    with pytest.warns(rnet.errors.ParamRefusedWarning, match=r"/gain of /arm: 7\.5, set by /arm, is above its maximum 5"):
        param = gain(again, max=5)
    assert param.get() == 1.0
    assert param.refused == "7.5 is above its maximum 5.0 1/s"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert gain(node("third")).refused is None


def test_preset_before_the_node_runs(node: Make) -> None:
    node("person").state["/params/arm/gain"] = 3
    arm = node("arm")
    # A whole number is accepted.
    assert gain(arm).get() == 3.0
    node("second").state["/params/arm/must"] = "x"
    assert arm.param("/must", type=str).get() == "x"
    with pytest.raises(rnet.errors.BadValueError, match="cannot be deleted"):
        del arm.state["/params/arm/must"]


def test_read_only_while_its_node_runs(node: Make) -> None:
    person = node("person").state
    person["/params/arm/legs"] = 6
    with rnet.Node("arm") as arm:
        legs = arm.param("/legs", default=4, read_only=True)
        assert legs.get() == 6
        for setter in (lambda: legs.set(8), lambda: person.set(legs.key, 8), legs.reset):
            with pytest.raises(rnet.errors.BadValueError, match="read-only while /arm runs"):
                setter()
    person["/params/arm/legs"] = 8
    assert node("arm").param("/legs", default=4, read_only=True).get() == 8


def test_on_change_is_called_with_each_new_value(node: Make) -> None:
    told: queue.Queue[float] = queue.Queue()
    more: queue.Queue[float] = queue.Queue()
    arm, other = node("arm"), node("other")
    # The node keeps the parameter.
    key = gain(arm, on_change=told.put).key
    param = gain(arm)

    @param.on_change
    def changed(value: float) -> None:
        more.put(value)

    assert callable(changed)
    other.state[key] = 2.0
    assert told.get(timeout=LIMIT_S) == more.get(timeout=LIMIT_S) == 2.0
    other.state[key] = 2.0
    param.set(3.0)
    # Setting the same value again is not a change.
    assert told.get(timeout=LIMIT_S) == more.get(timeout=LIMIT_S) == 3.0
    del other.state[key]
    assert told.get(timeout=LIMIT_S) == 1.0
    arm.close()
    other.state[key] = 5.0
    assert told.empty()


def test_a_callback_that_raises_is_called_again(
    node: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    raised: queue.Queue[Any] = queue.Queue()
    monkeypatch.setattr(sys, "unraisablehook", lambda hook: raised.put(hook.exc_value))

    def fails(value: float) -> None:
        raise ValueError(value)

    param = gain(node("arm"), on_change=fails)
    for value in (2.0, 3.0):
        param.set(value)
        assert raised.get(timeout=LIMIT_S).args == (value,)


def test_what_is_closed_says_so(node: Make) -> None:
    arm = node("arm")
    param = gain(arm)
    arm.close()
    for use in (param.get, lambda: param.set(2.0), param.reset, lambda: param.on_change(print)):
        with pytest.raises(rnet.ClosedError, match="parameter /gain of /arm"):
            use()
    with pytest.raises(rnet.ClosedError):
        gain(arm)
    made = weakref.ref(param)
    del param
    assert made() is None


def test_a_forked_child_cannot_use_it(node: Make) -> None:
    param = gain(node("arm"))
    child = os.fork()
    if child == 0:
        try:
            param.get()
        except rnet.ClosedError:
            os._exit(0)
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    assert param.get() == 1.0


def test_another_process_sets_it(node: Make) -> None:
    param = gain(node("arm"))
    program = """
import rnet
state = rnet.Node("other").state
state["/params/arm/gain"] = 2.5
try:
    state["/params/arm/gain"] = 20.0
except rnet.errors.BadValueError as error:
    print(error)
"""
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=LIMIT_S
    )
    assert "20.0 is above its maximum 10.0 1/s" in run.stdout
    assert param.get() == 2.5


def test_threads_read_while_one_sets(node: Make) -> None:
    param = gain(node("arm"))
    stop = threading.Event()
    seen: list[float] = []

    def read() -> None:
        last = 0.0
        while not stop.is_set():
            last = param.get()
        seen.append(last)

    threads = [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    for number in range(200):
        param.set(number / 20)
    stop.set()
    for thread in threads:
        thread.join(LIMIT_S)
    assert len(seen) == 3 and all(0 <= value <= 10 for value in seen)
