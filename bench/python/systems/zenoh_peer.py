"""Zenoh between two peers, through zenoh-python: TCP, and shared memory for large messages."""

from __future__ import annotations

import json
import socket

from .base import Publisher, System, installed

ABOUT = {
    "label": "Zenoh peer tcp, large messages in shared memory (Python)",
    "client": "eclipse-zenoh (Python binding of the Rust library)",
    "settings": [
        "shared memory as it is by default: messages of 3 KiB and more go through it",
        "peers connect straight to each other; scouting and gossip are off: addresses are known",
        "reliable, congestion control BLOCK: a publisher waits rather than drops (zenoh: QoS)",
        "block/wait_before_close 60 s: a connection that stands still for 5 s is otherwise closed",
        "messages come through zenoh-python's default channel up to 64 KiB, through a"
        " callback above: "
        "each was the quicker one here",
        "latency: express, so that no message waits for a batch (zenoh: QoS)",
    ],
}

_BLOCK_US = "60000000"
_CHANNEL_UP_TO = 64 << 10


class System(System):
    """See the module."""

    @staticmethod
    def version() -> str:
        import zenoh  # noqa: F401

        return installed("eclipse-zenoh")

    def publisher(self, net, topic):
        return _Publisher(net, topic)

    def subscribe(self, net, topic, take, stop):
        session = _open(connect=net.find_all(topic))
        if topic.max_len > _CHANNEL_UP_TO:
            session.declare_subscriber(
                topic.name, lambda sample: take(sample.payload.to_bytes())
            )
            stop.wait()
        else:
            subscriber = session.declare_subscriber(topic.name)
            stop.on(subscriber.undeclare)
            for sample in subscriber:
                take(sample.payload.to_bytes())
        session.close()


class _Publisher(Publisher):
    def __init__(self, net, topic) -> None:
        import zenoh

        # Zenoh does not report the port that it got for port 0.
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            address = "tcp/127.0.0.1:%d" % probe.getsockname()[1]
        self._session = _open(listen=[address])
        publisher = self._session.declare_publisher(
            topic.name,
            congestion_control=zenoh.CongestionControl.BLOCK,
            reliability=zenoh.Reliability.RELIABLE,
            express=not topic.throughput,
        )
        self._publisher = publisher
        self.send = publisher.put
        net.announce(topic, address)

    def close(self) -> None:
        self._session.close()


def _open(listen=(), connect=()):
    import zenoh

    config = zenoh.Config()
    config.insert_json5("mode", '"peer"')
    config.insert_json5("scouting/multicast/enabled", "false")
    config.insert_json5("scouting/gossip/enabled", "false")
    config.insert_json5(
        "transport/link/tx/queue/congestion_control/block/wait_before_close", _BLOCK_US
    )
    config.insert_json5("listen/endpoints", json.dumps(list(listen)))
    config.insert_json5("connect/endpoints", json.dumps(list(connect)))
    return zenoh.open(config)
