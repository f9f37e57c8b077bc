"""ZeroMQ PUB/SUB over TCP through pyzmq."""

from __future__ import annotations

from .base import Publisher, System, installed

ABOUT = {
    "label": "ZeroMQ PUB/SUB tcp (Python)",
    "client": "pyzmq (Python, Cython)",
    "settings": [
        "XPUB with XPUB_NODROP: a send waits at the high-water mark; PUB would drop"
        " (zmq_setsockopt)",
        "high-water marks up to 64 MiB of messages, at most 100,000: fewer waits (zmq_setsockopt)",
        "messages above 64 KiB are received with copy=False, as pyzmq's page on performance"
        " advises",
    ],
}

# pyzmq's own threshold between copying and not copying messages.
_COPY_UP_TO = 64 << 10
_LOOK_AT_STOP_MS = 100


class System(System):
    """See the module."""

    @staticmethod
    def version() -> str:
        import zmq

        return f"{installed('pyzmq')}, libzmq {zmq.zmq_version()}"

    def publisher(self, net, topic):
        return _Publisher(net, topic)

    def subscribe(self, net, topic, take, stop):
        import zmq

        context = zmq.Context.instance()
        socket = context.socket(zmq.SUB)
        socket.set(zmq.LINGER, 0)
        socket.set(zmq.RCVHWM, topic.depth())
        socket.set(zmq.RCVTIMEO, _LOOK_AT_STOP_MS)
        socket.set(zmq.SUBSCRIBE, b"")
        for address in net.find_all(topic):
            socket.connect(address)
        receive, copied = socket.recv, topic.max_len <= _COPY_UP_TO
        while not stop.is_set():
            try:
                if copied:
                    while True:
                        take(receive())
                else:
                    while True:
                        take(receive(copy=False).buffer)
            except zmq.Again:
                continue
        context.destroy()


class _Publisher(Publisher):
    def __init__(self, net, topic) -> None:
        import zmq

        self._context = zmq.Context.instance()
        socket = self._context.socket(zmq.XPUB)
        socket.set(zmq.LINGER, 0)
        socket.set(zmq.SNDHWM, topic.depth())
        socket.set(zmq.XPUB_NODROP, 1)
        port = socket.bind_to_random_port("tcp://127.0.0.1")
        net.announce(topic, f"tcp://127.0.0.1:{port}")
        self.send = socket.send

    def close(self) -> None:
        self._context.destroy()
