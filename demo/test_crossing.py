"""Tests that crossing.py detects a message that was lost between two hosts."""

import copy
import os

import crossing
import hosts

NO_LOSS = dict.fromkeys(("overrun", "link", "restart", "detached"), 0)


def publisher(node, sent, *, link=0, first=None):
    return {
        "id": 7,
        "stands_for": None if first is None else 7,
        "node": node,
        "topic": "/robot/state",
        "sent": sent,
        "readers": 1,
        "gone": False,
        "proxy": first is not None,
        "known_lost": {**NO_LOSS, "link": link},
        "first": first,
        "kept": 0,
    }


def books():
    """100 messages, of which the link carried those from 10 on; 5 were lost with a connection, after which
    there was a second proxy.
    """
    subscription = {
        "node": "/logger",
        "topic": "/robot/state",
        "gone": False,
        "proxy": False,
        "unserved": 0,
        "owed": 85,
        "received": 85,
        "skipped": 0,
        "queued": 0,
        "lost": {**NO_LOSS, "link": 5},
    }
    first, second = publisher("@motors/sim", 40, first=10), publisher("@motors/sim", 45, link=5, first=50)
    return {
        "motors": {
            "at_ns": 1,
            "publishers": [publisher("/sim", 100)],
            # The subscription of the link's proxy, which is never read.
            "subscriptions": [{**subscription, "node": "@control/logger", "proxy": True, "received": 0}],
            "latency_us": {},
        },
        "control": {
            "at_ns": 5,
            "publishers": [first, second],
            "subscriptions": [subscription],
            "latency_us": {"/robot/state": {"p50": 1.0}},
        },
    }


SENT = {"motors": {"sim": {"/robot/state": 100}}, "control": {}}
TALLY = {"/robot/state": {"received": 85, "missing": 5, "disordered": 0}}


def check(books, sent=SENT, tally=TALLY):
    return list(crossing.check(books, sent, tally, "control"))


def test_accepts_counts_that_agree():
    assert check(books()) == []
    assert crossing.is_settled(books())


def test_detects_loss_in_the_link():
    changed = books()
    changed["control"]["publishers"][1]["sent"] -= 1
    reason = "1 messages of /robot/state were lost in transit to control"
    assert any(reason in problem for problem in check(changed))
    assert not crossing.is_settled(changed)


def test_detects_loss_between_two_connections():
    changed = books()
    changed["control"]["publishers"][0]["sent"] -= 1
    assert any("1 messages of /robot/state were lost in transit" in problem for problem in check(changed))


def test_detects_received_message_counted_as_lost():
    changed = books()
    changed["control"]["publishers"][1]["known_lost"]["link"] += 2
    assert any("2 messages of /robot/state were counted twice" in problem for problem in check(changed))
    changed = books()
    changed["control"]["publishers"][1]["first"] -= 3
    assert any("3 messages of /robot/state were counted twice" in problem for problem in check(changed))
    # Messages kept for late joiners are repeated.
    changed["motors"]["publishers"][0]["kept"] = 3
    assert not any("counted twice" in problem for problem in check(changed))


def test_detects_duplicate_at_logger():
    assert any("twice" in p for p in check(books(), tally={"/robot/state": {**TALLY["/robot/state"], "disordered": 1}}))


def test_detects_gap_that_no_proxy_reported():
    changed = books()
    changed["control"]["subscriptions"][0]["lost"]["link"] += 1
    assert any("counted but never sent" in problem for problem in check(changed))


def test_detects_loss_between_proxy_and_subscriber():
    changed = books()
    changed["control"]["subscriptions"][0]["owed"] += 6
    assert any("lost but not counted" in problem for problem in check(changed))


def test_detects_different_counts_of_sender_and_logger():
    sent = copy.deepcopy(SENT)
    sent["motors"]["sim"]["/robot/state"] = 101
    assert any("host motors: sim reports 101" in problem for problem in check(books(), sent))
    assert any("misses 6" in p for p in check(books(), tally={"/robot/state": {**TALLY["/robot/state"], "missing": 6}}))


def test_merges_counts_of_both_hosts():
    merged = crossing.merged(books())
    assert [p["node"] for p in merged["publishers"]] == ["/sim"]
    assert [(s["node"], s["owed"]) for s in merged["subscriptions"]] == [("/logger", 90)]
    assert merged["latency_us"] == {"/robot/state": {"p50": 1.0}}


def test_hosts_are_unavailable_without_root(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert hosts.missing() == "hosts are network namespaces, which need root"
