"""robot-net's own Python package."""

from __future__ import annotations

import threading

from .base import Publisher, System, installed

ABOUT = {
    "label": "robot-net reliable (Python)",
    "client": "rnet (Python binding of the Rust library)",
    "settings": [
        "reliable on both sides: a publisher waits for a subscriber that is behind",
        "on_full=Wait(30): it waits that long before it raises, not 1 s",
        "its directory on /dev/shm, as is its default",
        "messages up to 4 KiB are received as bytes, longer ones read in place, as its guide advises",
    ],
}

_WAIT_S = 30.0
_COPY_UP_TO = 4096


class System(System):
    """See the module."""

    @staticmethod
    def version() -> str:
        import rnet

        return f"rnet {rnet.__version__}"

    def publisher(self, net, topic):
        return _Publisher(net, topic)

    def subscribe(self, net, topic, take, stop):
        import rnet

        node = _node(net, topic, "subscriber")
        copied = topic.max_len <= _COPY_UP_TO
        subscriber = node.subscriber("/" + topic.name, bytes if copied else None, reliable=True)
        stop.on(lambda: threading.Thread(target=subscriber.close).start())
        if copied:
            for message in subscriber:
                take(message)
        else:
            for message in subscriber:
                take(message.data)
        node.close()


class _Publisher(Publisher):
    def __init__(self, net, topic) -> None:
        import rnet

        self._node = _node(net, topic, "publisher")
        self._publisher = self._node.publisher(
            "/" + topic.name,
            reliable=True,
            on_full=rnet.Wait(_WAIT_S),
            urgent=topic.lane == "urgent",
        )
        self.send = self._publisher.send

    def send_in_place(self, length: int, write, number: int) -> None:
        with self._publisher.loan(length) as memory:
            write(memory, number)

    def close(self) -> None:
        self._node.close()


def _node(net, topic, role: str):
    import rnet

    return rnet.Node(f"{topic.name}_{role}_{topic.index}", domain="bench", dir=net.dir)
