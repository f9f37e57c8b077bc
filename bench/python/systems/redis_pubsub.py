"""Redis publish/subscribe through redis-py with the parser hiredis."""

from __future__ import annotations

from .base import Publisher, System, installed

ABOUT = {
    "label": "Redis pub/sub (Python)",
    "client": "redis-py with hiredis (Python, parser in C)",
    "settings": [
        "hiredis as the parser, as redis-py's documentation advises",
        "subscriber: listen(), redis-py's blocking loop; unsubscribing from outside ends it",
        "throughput: pipelines without transaction, up to 500 messages or 256 KiB (Redis:"
        " pipelining)",
        "the server's limit for slow subscribers is off, so that none is cut off (redis.conf)",
    ],
}

_PIPELINE_MESSAGES = 500
_PIPELINE_BYTES = 256 << 10


class System(System):
    """See the module."""

    BROKER = "redis"

    @staticmethod
    def version() -> str:
        import hiredis  # noqa: F401 - without it redis-py would fall back to a parser in Python
        import redis  # noqa: F401

        return f"{installed('redis')}, {installed('hiredis')}"

    def publisher(self, net, topic):
        return _Pipelined(net, topic) if topic.throughput else _AtOnce(net, topic)

    def subscribe(self, net, topic, take, stop):
        client = _connect(net)
        subscription = client.pubsub(ignore_subscribe_messages=True)
        subscription.subscribe(topic.name)
        # Not by closing the connection: redis-py would connect and subscribe again.
        stop.on(subscription.unsubscribe)
        for message in subscription.listen():
            take(message["data"])
        subscription.close()
        client.close()


class _AtOnce(Publisher):
    def __init__(self, net, topic) -> None:
        self._client = _connect(net)
        self._channel = topic.name

    def send(self, message) -> None:
        self._client.publish(self._channel, message)

    def close(self) -> None:
        self._client.close()


class _Pipelined(Publisher):
    def __init__(self, net, topic) -> None:
        self._client = _connect(net)
        self._pipeline = self._client.pipeline(transaction=False)
        self._channel = topic.name
        self._messages = self._bytes = 0

    def send(self, message) -> None:
        # A pipeline keeps commands until it is executed.
        self._pipeline.publish(self._channel, bytes(message))
        self._messages += 1
        self._bytes += len(message)
        if self._messages >= _PIPELINE_MESSAGES or self._bytes >= _PIPELINE_BYTES:
            self.flush()

    def flush(self) -> None:
        if self._messages:
            self._pipeline.execute()
            self._messages = self._bytes = 0

    def close(self) -> None:
        self._client.close()


def _connect(net):
    import redis

    return redis.Redis(host="127.0.0.1", port=net.port())
