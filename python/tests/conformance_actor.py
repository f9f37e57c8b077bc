"""An actor of the conformance suite (crates/rnet/tests/it/conformance): executes the steps of a test, one JSON object
per line, and answers each with its outcome. See cpp/tests/conformance_actor.cpp and conformance/actor.rs."""

from __future__ import annotations

import json
import os
import struct
import sys
import threading
import time
from typing import Any

import rnet
from conformance_parts import LONG_S, Parts, Talks, act

MARK = "@@"
WORD = (1 << 64) - 1


def content(tag: int, index: int, length: int) -> bytes:
    """As `content` of content.rs."""
    state = (tag * 0x9E3779B97F4A7C15 & WORD) ^ index ^ (length << 32 & WORD)
    words = []
    for at in range((length + 7) // 8):
        state ^= state >> 12
        state ^= state << 25 & WORD
        state ^= state >> 27
        words.append(tag if at == 0 else index if at == 1 else state * 0x2545F4914F6CDD1D & WORD)
    return struct.pack(f"<{len(words)}Q", *words)[:length]


def digest(data: bytes) -> int:
    """As `digest` of content.rs."""
    total = len(data)
    padded = data + bytes(-len(data) % 8)
    for (word,) in struct.iter_unpack("<Q", padded):
        total = (total ^ word) * 0x100000001B3 & WORD
        total = (total << 17 | total >> 47) & WORD
    return total


def seconds(duration: dict[str, int] | None) -> float | None:
    return None if duration is None else duration["secs"] + duration["nanos"] * 1e-9


def lease(qos: dict[str, Any]) -> float | None:
    liveliness = qos["liveliness"]
    return None if liveliness == "automatic" else seconds(liveliness["manual_by_topic"]["lease"])


def publisher_options(qos: dict[str, Any]) -> dict[str, Any]:
    options: dict[str, Any] = {
        "urgent": qos["lane"] == "urgent",
        "log_len_bytes": qos["log_len_bytes"],
        "reserve_log": qos["reserve_log"],
        "pool_limit_bytes": qos["pool_limit_bytes"],
        "large_depth": qos["large_depth"],
        "deadline": seconds(qos["deadline"]),
        "lifespan": seconds(qos["lifespan"]),
        "liveliness_lease": lease(qos),
    }
    if qos["reliability"] == "reliable":
        on_full = qos["on_full"]
        options["reliable"] = True
        if on_full == "refuse":
            options["on_full"] = "refuse"
        elif "wait" in on_full:
            options["on_full"] = rnet.Wait(seconds(on_full["wait"]))
        else:
            options["on_full"] = rnet.Detach(seconds(on_full["detach"]["stall"]))
    if qos["durability"] != "volatile":
        options["transient_local"] = qos["durability"]["transient_local"]["depth"]
    return options


def subscriber_options(qos: dict[str, Any]) -> dict[str, Any]:
    history = qos["history"]
    return {
        "lane": qos["lane"],
        "reliable": qos["reliability"] == "reliable",
        "transient_local": qos["transient_local"],
        "keep_last": history["keep_last"] if isinstance(history, dict) else None,
        "keep_all": history == "keep_all",
        "wait": qos["wait"],
        "deadline": seconds(qos["deadline"]),
        "liveliness_lease": lease(qos),
    }


def message(sample: rnet.Sample) -> dict[str, int]:
    data = bytes(sample)
    return {"publisher": sample.publisher, "seq": sample.seq, "len": len(data), "digest": digest(data)}


class Actor:
    def __init__(self, name: str) -> None:
        base = os.environ["RNET_TEST_DIR"]
        self.node: rnet.Node | None = rnet.Node(name, domain="t", dir=base, state_dir=f"{base}/keep")
        self.publisher: Any = None
        self.subscriber: Any = None
        self.held: list[rnet.Sample] = []
        self.events: list[str] = []
        self.changed = threading.Condition()
        self.after = 0
        self.parts: dict[str, Any] = {}

    def act(self, step: str | dict[str, Any]) -> Any:
        kind, given = (step, {}) if isinstance(step, str) else next(iter(step.items()))
        self.after = 0
        try:
            if kind in ("Part", "Talk", "Key", "Typed"):
                return act(self._part(kind), given)
            return getattr(self, kind)(**given)
        except rnet.RnetError as error:
            return {"Failed": {"code": error.code, "text": str(error), "after": self.after}}

    def _part(self, kind: str) -> Any:
        """A part of the actor, which is made for its first step."""
        if kind not in self.parts:
            if kind in ("Key", "Typed"):
                # Only these need numpy, whose import takes long.
                import conformance_values as values  # noqa: PLC0415

                self.parts[kind] = {"Key": values.Keys, "Typed": values.Typed}[kind](self.node)
            else:
                self.parts[kind] = {"Part": Parts, "Talk": Talks}[kind](self.node)
        return self.parts[kind]

    def Publish(self, topic: str, qos: dict[str, Any]) -> Any:
        self.publisher = self.node.publisher(topic, **publisher_options(qos))
        return "Done"

    def Subscribe(self, topic: str, qos: dict[str, Any]) -> Any:
        self.subscriber = self.node.subscriber(topic, **subscriber_options(qos))
        return "Done"

    def Watch(self) -> Any:
        def note(event: rnet.events.MatchEvent) -> None:
            with self.changed:
                self.events.append(f"{event.kind} {event.node}")
                self.changed.notify_all()

        for endpoint in (self.publisher, self.subscriber):
            if endpoint is not None:
                endpoint.on_match(note)
        return "Done"

    def Events(self, at_least: int) -> Any:
        with self.changed:
            self.changed.wait_for(lambda: len(self.events) >= at_least, LONG_S)
            return {"Events": list(self.events)}

    def WaitSubscribers(self, n: int, timeout_ms: int) -> Any:
        self.publisher.wait_for_subscribers(n, timeout=timeout_ms / 1000)
        return "Done"

    def WaitPublishers(self, n: int, timeout_ms: int) -> Any:
        self.subscriber.wait_for_publishers(n, timeout=timeout_ms / 1000)
        return "Done"

    def Count(self) -> Any:
        subscribers = self.publisher.subscriber_count if self.publisher else 0
        return {"Count": subscribers + (self.subscriber.publisher_count if self.subscriber else 0)}

    def Send(self, tag: int, **given: int) -> Any:
        while self.after < given["count"]:
            self.publisher.send(content(tag, given["from"] + self.after, given["len"]))
            self.after += 1
        return "Done"

    def LoanAndDrop(self, len: int) -> Any:
        loan = self.publisher.loan(len)
        loan.data[:] = b"\xee" * len
        loan.discard()
        return "Done"

    def LoanUntilRefused(self, tag: int, **given: int) -> Any:
        while True:
            data = content(tag, given["from"] + self.after, given["len"])
            try:
                loan = self.publisher.loan(len(data))
            except rnet.FullError:
                # No loan succeeded, so no content has to come back.
                return {"Refused": {"sent": self.after, "intact": True}}
            loan.data[:] = data
            try:
                loan.send()
            except rnet.FullError:
                return {"Refused": {"sent": self.after, "intact": bytes(loan.data) == data}}
            self.after += 1

    def Receive(self, count: int, timeout_ms: int, hold: bool) -> Any:
        received = []
        while self.after < count:
            sample = self.subscriber.recv_sample(timeout=timeout_ms / 1000)
            received.append(message(sample))
            if hold:
                self.held.append(sample)
            self.after += 1
            del sample
        return {"ReceivedMessage": received}

    def MessageCounts(self, accounted: int, pause_us: int) -> Any:
        wrong, errors, expected = 0, [], {}
        while True:
            try:
                sample = self.subscriber.recv_sample(timeout=0.2)
                data = bytes(sample)
                (tag,) = struct.unpack_from("<Q", data)
                wrong += sample.seq < expected.get(sample.publisher, 0)
                wrong += data != content(tag, sample.seq, len(data))
                expected[sample.publisher] = sample.seq + 1
                del sample
            except rnet.WaitTimeoutError:
                pass
            except rnet.RnetError as error:
                errors.append(error.code)
                continue
            stats = self.subscriber.stats()
            received, skipped = sum(s.received for s in stats), sum(s.skipped for s in stats)
            lost = self.subscriber.lost
            if received + skipped + sum(lost.values()) >= accounted:
                counts = {"received": received, "lost": lost, "skipped": skipped, "wrong": wrong, "errors": errors}
                return {"MessageCounts": counts}
            time.sleep(pause_us * 1e-6)  # sleep: simulates a slow reader

    def TryReceive(self) -> Any:
        sample = self.subscriber.try_recv_sample()
        return {"ReceivedMessage": [] if sample is None else [message(sample)]}

    def Latest(self, timeout_ms: int) -> Any:
        return {"ReceivedMessage": [message(self.subscriber.latest_sample(timeout=timeout_ms / 1000))]}

    def CheckHeld(self) -> Any:
        return {"Digests": [digest(bytes(sample)) for sample in self.held]}

    def DropHeld(self, leave: int) -> Any:
        del self.held[leave:]
        return "Done"

    def CloseEndpoints(self) -> Any:
        for endpoint in (self.publisher, self.subscriber):
            if endpoint is not None:
                endpoint.close()
        return "Done"

    def CloseNode(self) -> Any:
        self.node.close()
        return "Done"


def main() -> None:
    actor = Actor(os.environ["RNET_TEST_ROLE"])
    for line in sys.stdin:
        print(MARK + json.dumps(actor.act(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
