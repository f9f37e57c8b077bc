"""Measurements of one phase of one run: figures over all of its processes.

A figure is `None` where the phase has nothing to compute it from.
"""

from distribution import merged
from statistics import fmean


class Phase:
    """One phase of one run. `topic` narrows a figure down to one topic; a name with a leading `!`
    means all topics but that."""

    def __init__(self, raw):
        self.raw = raw
        self.label = raw["label"]
        self.processes = raw.get("processes") or []
        self.results = [p["result"] for p in self.processes if p.get("result")]
        self._merged = {}

    def _all(self, field):
        return [item for result in self.results for item in result.get(field) or []]

    def received(self, topic=None):
        """One entry for each subscription."""
        entries = self._all("received")
        if topic is None:
            return entries
        if topic.startswith("!"):
            return [e for e in entries if e["topic"] != topic[1:]]
        return [e for e in entries if e["topic"] == topic]

    def topics(self):
        """The names of the topics, in the order of the raw data."""
        return list(dict.fromkeys(e["topic"] for e in self.received()))

    def total(self, field, topic=None):
        """The sum of a count over all subscriptions."""
        entries = self.received(topic)
        return sum(e.get(field, 0) for e in entries) if entries else None

    def rate(self, topic=None):
        """Delivered messages per second: between n messages are n - 1 intervals; the mean over the
        readers. A reader of fewer than two messages has no rate, and then the phase has none: a
        mean without the reader that got nothing would be too good."""
        entries = self.received(topic)
        if not entries or any(e["count"] < 2 or not e["span_ns"] for e in entries):
            return None
        return fmean((e["count"] - 1) * 1e9 / e["span_ns"] for e in entries)

    def target(self):
        """Messages per second that each publisher was to send, or `None`."""
        return self.raw.get("rate_hz")

    def bytes_per_s(self, topic=None, length=None):
        """Delivered bytes per second at each reader; `length` where the phase has several."""
        rate, length = self.rate(topic), length or self.raw.get("len")
        return None if rate is None or length is None else rate * length

    def latency(self, topic=None):
        """One-way times of all readers together."""
        if topic not in self._merged:
            self._merged[topic] = merged(e["latency"] for e in self.received(topic))
        return self._merged[topic]

    def quantile_us(self, q, topic=None):
        """A quantile of the one-way times, µs."""
        return self.latency(topic).quantile_us(q)

    def max_us(self, topic=None):
        """The longest one-way time, µs."""
        return self.latency(topic).max_us()

    def mean_us(self, topic=None):
        """The mean one-way time, µs."""
        return self.latency(topic).mean_us()

    def calls(self, call=None):
        """One entry for each key-value client that did such calls (`None`: any)."""
        found = (r.get("calls") for r in self.results)
        return [c for c in found if c and call in (None, c["call"])]

    def calls_per_s(self, call=None, mean=False):
        """Answered calls per second: the sum over the clients, or their mean."""
        return self._per_s(call, "count", mean)

    def distinct_per_s(self):
        """Values per second that differed from the one before: the mean over the readers."""
        return self._per_s("get", "distinct", True)

    def _per_s(self, call, field, mean):
        rates = [c[field] * 1e9 / c["elapsed_ns"] for c in self.calls(call) if c["elapsed_ns"]]
        if not rates:
            return None
        return fmean(rates) if mean else sum(rates)

    def call_times(self, call=None, field="latency"):
        """Times of calls (`latency`) or ages of the values got (`age`), of all clients together."""
        return merged(c[field] for c in self.calls(call))

    def wrong(self):
        """Calls with a wrong answer."""
        found = self.calls()
        return sum(c["wrong"] for c in found) if found else None

    def tries_per_call(self):
        """How often a call was begun, in the mean, until it succeeded; `None` where nothing can fail."""
        tries, count = (sum(c.get(f, 0) for c in self.calls()) for f in ("tries", "count"))
        return tries / count if tries and count else None

    def round_trips(self):
        """(bytes, ns) in the order of sending."""
        return self._all("round_trips")

    def round_trips_lost(self):
        """Messages that did not come back, or `None` where none was sent to come back."""
        lost = sum(r.get("round_trips_lost", 0) for r in self.results)
        return lost if lost or self.round_trips() else None

    def operations(self):
        """Messages delivered, calls answered and round trips together."""
        done = sum(e["count"] for e in self._all("received"))
        done += sum(c["count"] for c in self.calls())
        return done + len(self.round_trips())

    def cpu_ns(self):
        """CPU time of all processes, ns."""
        return sum(p.get("cpu_ns") or 0 for p in self.processes)

    def cpu_percent(self, who):
        """CPU of the processes whose names begin so, as a share of one core, %; `None` without one."""
        found = [p.get("cpu_ns") or 0 for p in self.processes if p["name"].startswith(who)]
        seconds = self.seconds()
        return sum(found) / 1e7 / seconds if found and seconds else None

    def wire_per_message(self):
        """Bytes on the cable between two hosts, for each message sent."""
        wire, sent = self.raw.get("wire_bytes"), sum(s["count"] for s in self._all("sent"))
        return wire / sent if wire and sent else None

    def cpu_per_operation_us(self):
        """CPU time of all processes for each message delivered (call, round trip), µs."""
        done = self.operations()
        return self.cpu_ns() / 1e3 / done if done else None

    def seconds(self):
        """How long the phase took, s: the time over which its CPU time was taken."""
        return self.raw.get("elapsed_s")

    def cpu_per_s(self):
        """CPU seconds per second, all processes: 1 is one core kept busy."""
        seconds = self.seconds()
        return self.cpu_ns() / 1e9 / seconds if seconds else None

    def rss_mib(self):
        """Resident memory of all processes, MiB; pages that they share count once for each."""
        return sum(p.get("rss_kib") or 0 for p in self.processes) / 1024

    def memory_mib(self, *parts):
        """Memory with each page counted once, MiB: all of it, or the named parts."""
        memory = self.raw.get("memory")
        return sum(memory[p] for p in parts or memory) / 1024 if memory else None

    def memory_per_publisher_kib(self):
        """The same for each publisher, KiB."""
        publishers = len(self._all("sent"))
        whole = self.memory_mib()
        return whole * 1024 / publishers if whole and publishers else None

    def lag_max_us(self):
        """How far behind its schedule a sender was at worst, µs."""
        lags = [s.get("lag_max_ns", 0) for s in self._all("sent")]
        return max(lags) / 1e3 if lags else None
