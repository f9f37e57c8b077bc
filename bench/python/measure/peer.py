"""A process with one publisher or one subscription. See bench/harness/src/spec.rs."""

from __future__ import annotations

import inspect
import threading

from .collect import Collector
from .control import STOP, Events, Orders, Stop
from .net import Net, Topic
from .stream import Stream, precise_sleep

# How often Hello and End are repeated.
_REPEAT_S = 0.005


async def run_peer(system, spec: dict, orders: Orders, events: Events) -> None:
    """Runs the process that the specification describes, to its end."""
    role = spec["role"]
    if role.get("role") != "peer":
        raise ValueError(f"a Python worker is a peer, not a {role.get('role')!r}")
    publishes, subscribes = role.get("publishes", []), role.get("subscribes", [])
    if len(publishes) + len(subscribes) != 1:
        raise ValueError("a Python worker has one publisher or one subscription")
    net = Net.from_spec(spec["net"])
    if publishes:
        await _publish(system, net, publishes[0], orders, events)
    else:
        await _subscribe(system, net, subscribes[0], orders, events)


async def _publish(system, net: Net, spec: dict, orders: Orders, events: Events) -> None:
    topic = Topic(**spec["topic"])
    publisher = system.publisher(net, topic)
    if inspect.isawaitable(publisher):
        publisher = await publisher
    # After the opening, as in bench/harness: a library's threads, made in it, sleep as they do for any user
    # of theirs.
    precise_sleep()
    stream, loads = Stream(publisher, topic), spec["loads"]
    events.tell("ready")
    ended = None
    while True:
        order = orders.next(_REPEAT_S)
        if order == STOP:
            break
        if order is None:
            await stream.mark(ended)
            continue
        phase = order["go"]
        rate_hz = next(iter(order.get("rates_hz", [])), None)
        load = loads[phase] if phase < len(loads) else None
        sent = await stream.run(phase, load, rate_hz)
        ended = phase
        await stream.mark(ended)
        events.tell("done", phase=phase, **({"sent": [sent]} if sent else {}))
    closed = publisher.close()
    if inspect.isawaitable(closed):
        await closed


async def _subscribe(system, net: Net, spec: dict, orders: Orders, events: Events) -> None:
    stop = Stop()
    reports = _Reports(events)
    collector = Collector(
        Topic(**spec["topic"]), spec["expects"], lambda: events.tell("ready"), reports.finished
    )

    def obey() -> None:
        while (order := orders.next()) != STOP:
            reports.started(order["go"])
        stop.set()

    threading.Thread(target=obey, name="obey", daemon=True).start()
    running = system.subscribe(net, Topic(**spec["topic"]), collector.take, stop)
    if inspect.isawaitable(running):
        await running


class _Reports:
    """Reports a phase when it is over here and `compare` has started it, whichever is later."""

    def __init__(self, events: Events) -> None:
        self._events = events
        self._lock = threading.Lock()
        self._started: set[int] = set()
        self._results: dict[int, dict] = {}

    def started(self, phase: int) -> None:
        with self._lock:
            self._started.add(phase)
            self._tell(phase)

    def finished(self, phase: int, received: dict) -> None:
        with self._lock:
            self._results[phase] = received
            self._tell(phase)

    def _tell(self, phase: int) -> None:
        if phase in self._started and phase in self._results:
            self._events.tell("done", phase=phase, received=[self._results.pop(phase)])
