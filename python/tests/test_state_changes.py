"""Conditional writes, changes relative to the current value, and several keys at once."""

from __future__ import annotations

import math
import pickle
import threading
import time

import pytest
import rnet
from conftest import LIMIT_S


@pytest.fixture
def state(node):
    return node("writer").state


# -- conditions -----------------------------------------------------------------------------------


def test_compare_and_set(state):
    first = state.compare_and_set("/k", 0, "made")
    with pytest.raises(rnet.errors.ConflictError) as caught:
        state.compare_and_set("/k", 0, "made again")
    assert (caught.value.key, caught.value.expected, caught.value.found) == ("/k", 0, first)
    second = state.set("/k", "changed", if_revision=first)
    with pytest.raises(rnet.errors.ConflictError):
        state.set("/k", "late", if_revision=first)
    with pytest.raises(rnet.errors.ConflictError):
        state.delete("/k", if_revision=first)
    assert state["/k"] == "changed"
    assert state.delete("/k", if_revision=second) is True
    with pytest.raises(rnet.errors.ConflictError) as caught:
        state.compare_and_set("/k", second, "gone")
    assert caught.value.found == 0
    error = pickle.loads(pickle.dumps(caught.value))
    assert (type(error), error.key, error.expected) == (rnet.errors.ConflictError, "/k", second)
    for bad in (-1, 1 << 64, 1.5, "x"):
        with pytest.raises((OverflowError, TypeError)):
            state.compare_and_set("/k", bad, 1)


def test_time_to_live(state):
    state.set("/short", 1, ttl=0.01)
    state.set("/long", 1, ttl=3600)
    assert 3590 < state.entry("/long").ttl_left <= 3600
    while "/short" in state:
        pass
    assert state.get("/short") is None and state["/long"] == 1
    with pytest.raises(KeyError):
        state["/short"]
    # Values written without it do not change.
    state.set("/long", 2)
    assert state.entry("/long").expires_boot_ns is None
    for bad in (-1, math.nan, math.inf):
        with pytest.raises(rnet.errors.BadValueError, match="ttl"):
            state.set("/long", 3, ttl=bad)
    assert state["/long"] == 2


def test_last_wills(node):
    reader = node("reader").state
    with rnet.Node("owner") as owner:
        mine = owner.state
        mine.set("/becomes", "well", last_will="gone")
        mine.set("/goes", 1, last_will=rnet.state.DELETE)
        mine.set("/of_another_type", 1, last_will={"why": "gone"}, change_type=True)
        with pytest.raises(rnet.errors.StateTypeError, match="last will"):
            mine.set("/goes", 2, last_will="text")
        mine.set("/stays", 1, last_will=2)
        mine.set("/stays", 1)
        mine.set("/taken", 1, last_will=2)
        assert reader.entry("/becomes").last_will == "gone"
        assert reader.entry("/goes").last_will is rnet.state.DELETE
        assert reader.entry("/stays").last_will is None
        reader["/taken"] = 3
        assert reader["/becomes"] == "well"
        watch = reader.watch("/becomes")
        assert next(watch).initial
    # The death of the owner is not noticed immediately.
    assert watch.recv(timeout=LIMIT_S).value == "gone"
    while "/goes" in reader:
        pass
    assert reader.snapshot().items() == [
        ("/becomes", "gone"),
        ("/of_another_type", {"why": "gone"}),
        ("/stays", 1),
        ("/taken", 3),
    ]
    assert repr(rnet.state.DELETE) == "rnet.state.DELETE"


# -- changes in terms of the present value -------------------------------------------------------


def test_a_conflict_that_the_function_of_an_update_raises_is_its_callers(state):
    state.set("/other", 1)
    calls = []

    def writes_elsewhere(value):
        calls.append(value)
        state.set("/other", 2, if_revision=0)

    with pytest.raises(rnet.errors.ConflictError) as caught:
        state.update("/n", writes_elsewhere)
    assert caught.value.key == "/other" and calls == [None]


def test_keys_of_mappings_are_texts(state):
    arm = state.hash("/arm")
    for act in (lambda: arm.get(5), lambda: arm.set_many({None: 1}), lambda: arm.__setitem__(5, 1)):
        with pytest.raises(TypeError, match="a field must be a str"):
            act()
    with pytest.raises(TypeError, match="a key must be a str"):
        state.snapshot().entry(5)


def test_update(state):
    assert state.update("/n", lambda n: (n or 0) + 1) == 1
    assert state.update("/n", lambda n: (n or 0) + 1) == 2
    assert state.update("/n", lambda n: rnet.state.DELETE) is rnet.state.DELETE
    assert "/n" not in state
    state.update("/plan", lambda plan: {**(plan or {}), "speed": 0.5})
    with pytest.raises(ZeroDivisionError):
        state.update("/plan", lambda plan: 1 / 0)
    with pytest.raises(rnet.errors.StateTypeError):
        state.update("/plan", lambda plan: "text")
    assert state["/plan"] == {"speed": 0.5}
    state.set("/short", 1, ttl=3600, last_will=0)
    state.update("/short", lambda n: n + 1)
    entry = state.entry("/short")
    assert entry.ttl_left > 0 and entry.last_will == 0 and entry.value == 2


def test_update_sees_who_was_in_between(state, node):
    other = node("other").state
    seen = []

    def change(n):
        seen.append(n)
        if len(seen) < 3:
            other.add("/n", 10)
        return n + 1

    state["/n"] = 0
    assert state.update("/n", change) == 21 and seen == [0, 10, 20] and state["/n"] == 21


def test_update_gives_up_where_others_are_always_faster(state):
    tries = 0

    def change(n):
        nonlocal tries
        tries += 1
        state.add("/n")
        return 0

    with pytest.raises(rnet.errors.LimitReachedError, match="/n"):
        state.update("/n", change)
    assert state["/n"] == tries > 10


def test_no_increment_is_lost(state, node):
    def work(name):
        mine = node(name).state
        for _ in range(200):
            mine.add("/sum")
            mine.update("/updated", lambda n: (n or 0) + 1)

    threads = [threading.Thread(target=work, args=(f"n{n}",)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT_S)
    assert (state["/sum"], state["/updated"]) == (800, 800)


def test_counters(state):
    assert state.add("/i") == 1 and state.add("/i", 41) == 42 and state.add("/i", -43) == -1
    assert type(state["/i"]) is int
    assert state.add("/f", 0.5) == 0.5 and state.add("/f", 0.25) == 0.75
    with pytest.raises(rnet.errors.StateTypeError):
        state.add("/i", 0.5)
    with pytest.raises(rnet.errors.StateTypeError):
        state.add("/f", 1)
    with pytest.raises(rnet.errors.BadValueError, match="int or a float"):
        state.add("/i", "1")
    state["/top"] = (1 << 63) - 1
    with pytest.raises(rnet.RnetError):
        state.add("/top")
    assert state["/top"] == (1 << 63) - 1


def test_lists_with_a_bound(state):
    assert [state.push("/log", f"line {n}", 3) for n in range(5)] == [1, 2, 3, 3, 3]
    assert state["/log"] == ["line 2", "line 3", "line 4"]
    state.push("/log", {"of": "another type"}, 3)
    assert state["/log"][-1] == {"of": "another type"}
    with pytest.raises(rnet.RnetError):
        state.push("/log", "x", 0)
    with pytest.raises(OverflowError):
        state.push("/log", "x", -1)


def test_sets(state):
    assert state.set_add("/seen", "a") is True and state.set_add("/seen", "a") is False
    assert state.set_add("/seen", 1) is True
    assert state["/seen"] == {"a", 1}
    assert state.contains("/seen", "a") and not state.contains("/seen", "b")
    assert not state.contains("/absent", "b")
    assert state.set_remove("/seen", "a") is True and state.set_remove("/seen", "a") is False
    assert state["/seen"] == {1}


def test_hashes(state):
    arm = state.hash("/arm")
    arm["mode"] = "idle"
    assert state["/arm/mode"] == "idle" == arm["mode"] == arm.get("mode")
    before = state.revision
    assert arm.set_many({"speed": 0.5, "joints": [1, 2]}) == before + 1
    assert arm.all() == {"joints": [1, 2], "mode": "idle", "speed": 0.5} == dict(arm)
    assert (list(arm), len(arm), arm.keys()) == (["joints", "mode", "speed"], 3, list(arm))
    assert arm.values() == [[1, 2], "idle", 0.5] and arm.items()[1] == ("mode", "idle")
    assert "mode" in arm and "other" not in arm and 3 not in arm and "no field!" not in arm
    assert arm.get("other", 1) == 1 and arm.prefix == "/arm"
    del arm["mode"]
    assert "/arm/mode" not in state and arm.delete("mode") is False
    with pytest.raises(KeyError):
        arm["mode"]
    with pytest.raises(rnet.errors.BadNameError):
        arm["no field!"] = 1
    with pytest.raises(rnet.errors.StateTypeError):
        arm.set_many({"new": 1, "speed": "fast"})
    assert "new" not in arm
    with pytest.raises(rnet.errors.BadNameError):
        state.hash("no prefix!")


# -- several keys ---------------------------------------------------------------------------------


def test_transactions(state):
    state["/a"], state["/b"] = 10, 0
    with state.transaction() as t:
        t["/a"] -= 4
        t["/b"] += 4
        assert (t["/a"], state["/a"], t.revision) == (6, 10, None)
        del t["/a"]
        assert "/a" not in t and "/a" in state and t.get("/a", 1) == 1
        t.set("/c", 1.5, ttl=3600, last_will=rnet.state.DELETE)
    assert dict(state.snapshot()) == {"/b": 4, "/c": 1.5}
    assert t.revision == state.revision == state.entry("/c").revision == state.entry("/b").revision
    assert state.entry("/c").last_will is rnet.state.DELETE
    with pytest.raises(rnet.ClosedError):
        t["/b"]
    with pytest.raises(KeyError), state.transaction() as t:
        t["/b"] = 5
        t["/absent"]
    assert state["/b"] == 4
    with state.transaction() as t:
        t["/b"] = 5
        t.discard()
    with state.transaction() as t:
        t["/b"] = 6
        t.commit()
    assert state["/b"] == 6
    with pytest.raises(rnet.errors.StateTypeError), state.transaction() as t:
        t["/b"] = 7
        t["/c"] = "text"
    assert state["/b"] == 6


def test_a_transaction_conflicts_with_who_was_in_between(state, node):
    other = node("other").state
    state["/a"] = 1
    with pytest.raises(rnet.errors.ConflictError) as caught, state.transaction() as t:
        t["/b"] = t["/a"]
        other["/a"] = 2
    assert caught.value.key == "/a" and "/b" not in state

    bodies = 0

    def body(t):
        nonlocal bodies
        bodies += 1
        t["/b"] = t["/a"]
        if bodies == 1:
            other["/a"] = 3
        return "done"

    assert state.transact(body) == "done" and (bodies, state["/b"]) == (2, 3)
    with pytest.raises(ZeroDivisionError):
        state.transact(lambda t: 1 / 0)


def test_money_is_neither_made_nor_lost(state, node):
    accounts = [f"/account/{n}" for n in range(4)]
    with state.transaction() as t:
        for account in accounts:
            t[account] = 100
    stop = threading.Event()
    sums = set()

    def audit():
        mine = node("auditor").state
        sums.add(sum(mine.snapshot("/account").values()))
        while not stop.is_set():
            sums.add(sum(mine.snapshot("/account").values()))

    def pay(number):
        mine = node(f"payer{number}").state
        for n in range(100):
            start, end = accounts[number], accounts[(number + 1 + n % 3) % 4]

            def body(t, start=start, end=end):
                t[start], t[end] = t[start] - 1, t[end] + 1

            mine.transact(body)

    auditor = threading.Thread(target=audit)
    auditor.start()
    payers = [threading.Thread(target=pay, args=(number,)) for number in range(4)]
    for payer in payers:
        payer.start()
    for payer in payers:
        payer.join(LIMIT_S)
    stop.set()
    auditor.join(LIMIT_S)
    assert sums == {400} and sum(state.values("/account")) == 400
