"""Core NATS through nats-py, which is a library for asyncio."""

from __future__ import annotations

import asyncio

from .base import Publisher, System, installed

ABOUT = {
    "label": "NATS core (Python)",
    "client": "nats-py (Python, asyncio)",
    "settings": [
        "throughput: publish alone, which writes at 2 MiB pending and waits then (nats-py's"
        " default)",
        "latency: after each publish the event loop runs until the message has been written",
        "subscription without limits on pending messages and bytes: it would drop (nats-py:"
        " subscribe)",
    ],
}


class System(System):
    """See the module."""

    BROKER = "nats"

    @staticmethod
    def version() -> str:
        import nats  # noqa: F401

        return installed("nats-py")

    async def publisher(self, net, topic):
        return _Publisher(await _connect(net), topic)

    async def subscribe(self, net, topic, take, stop):
        client = await _connect(net)
        stopped, loop = asyncio.Event(), asyncio.get_running_loop()

        async def on_message(message) -> None:
            take(message.data)

        await client.subscribe(
            topic.name, cb=on_message, pending_msgs_limit=0, pending_bytes_limit=0
        )
        stop.on(lambda: loop.call_soon_threadsafe(stopped.set))
        await stopped.wait()
        await client.close()


class _Publisher(Publisher):
    def __init__(self, client, topic) -> None:
        self._client = client
        self._subject = topic.name
        self._publish = client.publish
        self.send = self._collect if topic.throughput else self._hand_over

    def _collect(self, message):
        # The client keeps messages until it writes.
        return self._publish(self._subject, bytes(message))

    async def _hand_over(self, message) -> None:
        await self._publish(self._subject, bytes(message))
        while self._client.pending_data_size:
            await asyncio.sleep(0)  # sleep: none; lets the loop's writer run

    def flush(self):
        return self._client.flush()

    def close(self):
        return self._client.close()


async def _connect(net):
    import nats

    return await nats.connect(f"nats://127.0.0.1:{net.port()}")
