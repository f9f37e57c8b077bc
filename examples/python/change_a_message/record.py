"""Records messages of a topic with their types, as MCAP: record.py FILE TOPIC COUNT."""

import sys
import time

from mcap.writer import Writer

import rnet


def channel_of(writer: Writer, node: rnet.Node, topic: str, publisher: int) -> int:
    """A channel for the messages of one publisher, with the published type."""
    for kind in node.published_types(topic):
        if kind.publisher == publisher and kind.descriptor_set is not None:
            schema = writer.register_schema(kind.name, "protobuf", kind.descriptor_set)
            print(f"{kind.node} publishes {kind.name}")
            return writer.register_channel(topic, "protobuf", schema, {"node": kind.node})
    # Raw bytes, plain types, and publishers that have left: an MCAP channel without a type.
    print(f"the messages of publisher {publisher:x} have no protobuf type", file=sys.stderr)
    return writer.register_channel(topic, "", 0)


def record(path: str, topic: str, count: int) -> None:
    """A subscriber without a type receives every message, undecoded."""
    node = rnet.Node("recorder")
    channels: dict[int, int] = {}
    with open(path, "wb") as file, node.subscriber(topic, keep_all=True) as samples:
        writer = Writer(file)
        writer.start()
        for _, sample in zip(range(count), samples, strict=False):
            if sample.publisher not in channels:
                channels[sample.publisher] = channel_of(writer, node, topic, sample.publisher)
            # Messages have monotonic timestamps, recordings wall-clock timestamps.
            sent_ns = time.time_ns() - (rnet.now_ns() - sample.sent_ns)
            channel = channels[sample.publisher]
            writer.add_message(channel, sent_ns, bytes(sample), sent_ns, sample.seq % 2**32)
        writer.finish()
    print(f"{count} messages in {path}")


if __name__ == "__main__":
    record(sys.argv[1], sys.argv[2], int(sys.argv[3]))
