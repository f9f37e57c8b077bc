"""target/demo/summary.json: the results of a run, for programs and, through tables.py, for people."""

import json
import os
from typing import NamedTuple

import accounting
from judge import WINDOW_NS


class Evidence(NamedTuple):
    """Data of a completed run."""

    down_s: float  # time without a controller
    books_before: dict  # the watcher's, at the begin
    books_end: dict  # at the end
    books: dict  # and after all messages had arrived
    sent: dict  # {node: {topic: messages}} from the nodes
    tally: dict  # the logger's, by topic
    usage: dict  # {node: (CPU s, of s, resident kB)}


def make(demo, evidence, reason):
    """The summary as a dict. `reason`: why the run was aborted; `evidence` is then None."""
    failures = [reason] if reason else []
    if evidence:
        failures += demo.check(evidence)
        failures += demo.record.failures()
    record, reports = demo.record, demo.latest_reports
    seconds = (record.end_ns - record.begin_ns) * 1e-9 if evidence else 0.0
    return {
        "ok": not failures,
        "failures": failures,
        "seconds": seconds,
        "cpus": os.cpu_count(),
        "topics": _topics(evidence) if evidence else {},
        "nodes": {name: _node(demo, evidence, name, language) for name, language in demo.nodes.items()},
        "recovery": _recovery(demo, evidence) if evidence else None,
        "loop": reports.get("simulation", {}).get("loop"),
        "camera_source": reports.get("camera", {}).get("source", {}).get("source"),
        "verdicts": _verdicts(record) if evidence else [],
        "stops": [_stop(s, record.begin_ns) for s in demo.stops] if evidence else [],
        "accounting": _accounting(evidence) if evidence else None,
        **(demo.more(evidence) if evidence else {}),
    }


def write(summary, path):
    path.write_text(json.dumps(summary, indent=2, allow_nan=False) + "\n")


def _sent(books, topic):
    return sum(p["sent"] for p in books["publishers"] if p["topic"] == topic)


def _topics(evidence):
    before, end, books = evidence.books_before, evidence.books_end, evidence.books
    seconds = (end["at_ns"] - before["at_ns"]) * 1e-9
    return {
        topic: {
            "rate_hz": (_sent(end, topic) - _sent(before, topic)) / seconds,
            "messages": _sent(books, topic),
            "lost": sum(accounting.lost(s) for s in books["subscriptions"] if s["topic"] == topic),
            "latency_us": books["latency_us"].get(topic, dict.fromkeys(("p50", "p99", "p999", "max"))),
        }
        for topic in sorted({p["topic"] for p in books["publishers"]})
    }


def _node(demo, evidence, name, language):
    cpu_s, of_s, rss_kb = evidence.usage[name] if evidence else (0.0, 0.0, 0)
    return {
        "language": language,
        "join_ms": demo.join_ms.get(name),
        "cpu_percent": 100.0 * cpu_s / of_s if of_s else 0.0,
        "rss_kb": rss_kb,
    }


def _recovery(demo, evidence):
    record = demo.record
    return {
        "killed_at_s": (record.killed_ns - record.begin_ns) * 1e-9,
        "down_s": evidence.down_s,
        "held_after_ms": record.held_after_ms(),
        "held_after_simulated_ms": record.held_after_simulated_ms(),
        "join_ms": demo.rejoin_ms,
        "recovery_ms": record.recovery_ms(),
        "stopped_ms": demo.ordered.get("stop"),
        "went_on_ms": demo.ordered.get("go"),
    }


def _verdicts(record):
    return [_verdict(v, record.begin_ns) for v in record.verdicts if v["at_ns"] - WINDOW_NS >= record.begin_ns]


def _verdict(verdict, begin_ns):
    until_s = (verdict["at_ns"] - begin_ns) * 1e-9
    kept = {key: value for key, value in verdict.items() if key not in ("event", "at_ns", "time_ns")}
    return {"from_s": until_s - WINDOW_NS * 1e-9, "until_s": until_s, **kept}


def _stop(stop, begin_ns):
    return {
        "at_s": (stop["raised_ns"] - begin_ns) * 1e-9,
        "active": stop["active"],
        "reason": stop["reason"],
        "latency_us": stop["latency_us"],
    }


def _accounting(evidence):
    living = [s for s in evidence.books["subscriptions"] if not s["gone"]]
    return {
        "sent": sum(p["sent"] for p in evidence.books["publishers"]),
        "received": sum(s["received"] for s in living),
        "skipped": sum(s["skipped"] for s in living),
        "queued": sum(s["queued"] for s in living),
        "lost": sum(accounting.lost(s) for s in living),
        "unaccounted": sum(abs(accounting.unaccounted(s)) for s in living),
        "subscriptions": evidence.books["subscriptions"],
        "publishers": evidence.books["publishers"],
    }
