"""LCM over UDP multicast through its Python binding."""

from __future__ import annotations

from .base import Publisher, System, installed

ABOUT = {
    "label": "LCM udpm (Python)",
    "client": "lcm (Python binding of the C library)",
    "settings": [
        "ttl=0: packets stay on this machine (LCM: UDP multicast set-up)",
        "recv_buf_size=4 MiB, as LCM's page on UDP multicast advises for much data",
        "subscription queue without limit; LCM itself loses what the socket has no room for",
    ],
}

_LOOK_AT_STOP_MS = 100


class System(System):
    """See the module."""

    MAY_LOSE = "UDP multicast without repetition: what a receiver has no room for is lost"

    @staticmethod
    def version() -> str:
        import lcm  # noqa: F401

        return installed("lcm")

    def publisher(self, net, topic):
        return _Publisher(net, topic)

    def subscribe(self, net, topic, take, stop):
        bus = _open(net)
        subscription = bus.subscribe(_channel(net, topic), lambda _channel, message: take(message))
        subscription.set_queue_capacity(0)
        while not stop.is_set():
            bus.handle_timeout(_LOOK_AT_STOP_MS)


class _Publisher(Publisher):
    def __init__(self, net, topic) -> None:
        self._bus = _open(net)
        self._channel = _channel(net, topic)

    def send(self, message) -> None:
        # It takes nothing but bytes.
        self._bus.publish(self._channel, bytes(message))


def _channel(net, topic) -> str:
    """Another comparison may use the same group; LCM allows 63 bytes."""
    return f"{net.tag}/{topic.name}"


def _open(net):
    import lcm

    return lcm.LCM(f"udpm://239.255.76.{net.number}:7667?ttl=0&recv_buf_size={4 << 20}")
