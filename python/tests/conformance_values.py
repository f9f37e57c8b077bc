"""The state, the parameters and the typed messages of a conformance actor, and its steps on them: see keys.rs and
typed.rs of conformance."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import rnet
from conformance_parts import LONG_S, Words, said
from rnet.errors import ParamRefusedWarning
from rnet.msgs import LaserScan, Twist
from rnet.state import DELETE


def value_of(given: dict[str, Any]) -> Any:
    ((kind, value),) = given.items()
    if kind == "Bytes":
        return bytes(value)
    if kind == "Json":
        return json.loads(value)
    if kind in ("List", "Set"):
        return {"List": list, "Set": set}[kind](map(value_of, value))
    return float(value) if kind == "Float" else value


def json_of(value: Any) -> dict[str, Any] | None:
    if value is None:
        return None
    if isinstance(value, bytes):
        return {"Bytes": list(value)}
    if isinstance(value, dict):
        return {"Json": json.dumps(value, ensure_ascii=False, separators=(",", ":"))}
    if isinstance(value, list):
        return {"List": [json_of(item) for item in value]}
    if isinstance(value, (set, frozenset)):
        return {"Set": [json_of(item) for item in sorted(value)]}
    return {{bool: "Bool", int: "Int", float: "Float", str: "Str"}[type(value)]: value}


class Keys:
    def __init__(self, node: rnet.Node) -> None:
        self.node, self.state = node, node.state
        self.reported = Words()
        self.watch: Any = None
        self.transaction: Any = None
        self.params: dict[str, Any] = {}

    def Set(self, key: str, value: Any, options: dict[str, Any]) -> Any:
        will = DELETE if options["last_will_delete"] else options["last_will"] and value_of(options["last_will"])
        ttl_ms = options["ttl_ms"]
        revision = self.state.set(
            key, value_of(value), if_revision=options["if_revision"], ttl=None if ttl_ms is None else ttl_ms / 1000,
            durable=options["durable"], last_will=will, change_type=options["change_type"],
        )
        return said(str(revision))

    def Get(self, key: str) -> Any:
        return {"Value": json_of(self.state.get(key))}

    def Entry(self, key: str) -> Any:
        entry = self.state.entry(key)
        if entry is None:
            return {"Entry": None}
        seen = {name: getattr(entry, name) for name in ("revision", "version", "owner", "durable")}
        seen["value"], seen["expires"] = json_of(entry.value), entry.ttl_left is not None
        seen["last_will_delete"] = entry.last_will is DELETE
        seen["last_will"] = None if entry.last_will is DELETE else json_of(entry.last_will)
        return {"Entry": seen}

    def Delete(self, key: str, if_revision: int | None) -> Any:
        return said(str(self.state.delete(key, if_revision=if_revision)).lower())

    def Keys(self, prefix: str) -> Any:
        return said(*self.state.keys(prefix))

    def Count(self, key: str, times: int) -> None:
        for _ in range(times):
            self.state.add(key)
            self.state.update(key, lambda value: value + 1)

    def Begin(self) -> None:
        self.transaction = self.state.transaction()

    def Read(self, key: str) -> Any:
        return {"Value": json_of(self.transaction.get(key))}

    def Write(self, key: str, value: Any) -> None:
        self.transaction.set(key, value_of(value))

    def Commit(self) -> Any:
        return said(str(self.transaction.commit()))

    def Watch(self, prefix: str) -> None:
        self.watch = self.state.watch(prefix)

    def Changes(self, count: int) -> Any:
        changes = []
        for _ in range(count):
            change = self.watch.recv(timeout=LONG_S)
            seen = {name: getattr(change, name) for name in ("key", "expired", "initial", "skipped")}
            changes.append({**seen, "value": json_of(change.value)})
        return {"Changes": changes}

    def Declare(self, max: float) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ParamRefusedWarning)
            gain = self.node.param(
                "/gain", default=1.0, min=0.0, max=max, unit="1/s",
                on_change=lambda value: self.reported.add(f"gain {value:.1f}"),
            )
        mode = self.node.param("/mode", default="idle", choices=["idle", "moving"])
        self.params = {"/gain": gain, "/mode": mode}
        return said(*([] if gain.refused is None else [gain.refused]))

    def GetParam(self, name: str) -> Any:
        return {"Value": json_of(self.params[name].get())}

    def SetParam(self, name: str, value: Any) -> None:
        self.params[name].set(value_of(value))

    def ResetParam(self, name: str) -> None:
        self.params[name].reset()

    def ParamChanges(self, at_least: int) -> Any:
        return self.reported.at_least(at_least)


VECTOR = rnet.types.named_dtype("conformance.Vector", [("x", "f4"), ("y", "f4")])


def leg(turns: str, *more: tuple[str, str]) -> np.dtype[Any]:
    fields = [("force", "f8", 3), ("time_ns", "u8"), ("at", VECTOR, 2), ("turns", turns), ("side", "u4"), *more]
    return rnet.types.named_dtype("conformance.Leg", fields)


def leg_of(dtype: np.dtype[Any]) -> Callable[[int], Any]:
    def of(number: int) -> Any:
        n = float(number)
        at = [(n, n + 1), (n + 2, n + 3)]
        fields = [(n, -2 * n, 3 * n), (1 << 60) + number, at, 1000 * number, (1 << 32) - 1 - number]
        return np.array(tuple([*fields, 10 * n][: len(dtype.names)]), dtype)

    return of


def leg_words(leg: Any) -> str:
    numbers = [*leg["force"], leg["time_ns"], *(at[name] for at in leg["at"] for name in ("x", "y"))]
    numbers += [leg[name] for name in leg.dtype.names[3:]]
    return " ".join(str(int(number)) for number in numbers)


def twist_of(number: int) -> Twist:
    twist = Twist()
    twist.linear.x, twist.linear.y, twist.linear.z = number, -number, 0
    if number % 2 == 1:
        twist.angular.x, twist.angular.y, twist.angular.z = 0, 0, number
    return twist


def twist_words(twist: Twist) -> str:
    def words(name: str) -> str:
        vector = getattr(twist, name)
        return f"{vector.x:.0f} {vector.y:.0f} {vector.z:.0f}" if twist.HasField(name) else "none"

    return f"{words('linear')} {words('angular')}"


def scan_of(number: int) -> LaserScan:
    scan = LaserScan(frame_id=f"laser {number}", ranges=[number + at for at in range(1080)])
    scan.timestamp.seconds, scan.timestamp.nanos = number, 7
    return scan


def scan_words(scan: LaserScan) -> str:
    stamp = scan.timestamp
    return f"{scan.frame_id} {stamp.seconds} {stamp.nanos} {len(scan.ranges)} {sum(scan.ranges):.0f}"


LEGS = {"Leg": leg("i4"), "LegGrown": leg("i4", ("current", "f8")), "LegRetyped": leg("u4")}
#: The type, what makes a message of a number, and the words of a message.
FORMS: dict[str, tuple[Any, Callable[[int], Any], Callable[[Any], str]]] = {
    **{name: (dtype, leg_of(dtype), leg_words) for name, dtype in LEGS.items()},
    "Twist": (Twist, twist_of, twist_words),
    "LaserScan": (LaserScan, scan_of, scan_words),
}


class Typed:
    def __init__(self, node: rnet.Node) -> None:
        self.node = node
        self.publisher: Any = None
        self.subscriber: Any = None
        self.service: Any = None
        self.of: Any = None
        self.words: Any = None

    def Publish(self, topic: str, form: str) -> None:
        type_, self.of, _ = FORMS[form]
        self.publisher = self.node.publisher(topic, type_)

    def Subscribe(self, topic: str, form: str) -> None:
        type_, _, self.words = FORMS[form]
        self.subscriber = self.node.subscriber(topic, type_)

    def WaitSubscribers(self) -> None:
        self.publisher.wait_for_subscribers(1, timeout=LONG_S)

    def WaitPublishers(self) -> None:
        self.subscriber.wait_for_publishers(1, timeout=LONG_S)

    def Send(self, number: int) -> None:
        self.publisher.send(self.of(number))

    def Receive(self) -> Any:
        return said(self.words(self.subscriber.recv(timeout=LONG_S)))

    def Echo(self, name: str, form: str) -> None:
        type_, _, _ = FORMS[form]
        self.service = self.node.service(name, type_, type_, lambda request: request)

    def Call(self, name: str, form: str, number: int) -> Any:
        type_, of, words = FORMS[form]
        client = self.node.client(name, type_, type_, timeout=LONG_S)
        return said(words(client.call(of(number))))
