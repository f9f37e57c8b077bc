"""Records messages of a topic with their types, as MCAP: record.py FILE TOPIC COUNT."""

import sys
import time

from mcap.writer import Writer

import rnet


def channel_of(writer: Writer, node: rnet.Node, topic: str, publisher: int) -> int:
    """A channel for the messages of one publisher, with the type that came with them."""
    for kind in node.published_types(topic):
        if kind.publisher == publisher and kind.descriptor_set is not None:
            schema = writer.register_schema(kind.name, "protobuf", kind.descriptor_set)
            print(f"{kind.node} says {kind.name}")
            return writer.register_channel(topic, "protobuf", schema, {"node": kind.node})
    # Raw bytes and plain types, and a publisher that has left: MCAP has channels without a type.
    print(f"the messages of publisher {publisher:x} have no protobuf type", file=sys.stderr)
    return writer.register_channel(topic, "", 0)


def record(path: str, topic: str, count: int) -> None:
    """Without a type a subscriber takes everything, as it came."""
    node = rnet.Node("recorder")
    channels: dict[int, int] = {}
    with open(path, "wb") as file, node.subscribe(topic, keep_all=True) as samples:
        writer = Writer(file)
        writer.start()
        for _, sample in zip(range(count), samples, strict=False):
            if sample.publisher not in channels:
                channels[sample.publisher] = channel_of(writer, node, topic, sample.publisher)
            # The stamps of messages are of the monotonic clock, those of a recording of the day's.
            sent_ns = time.time_ns() - (rnet.now_ns() - sample.sent_ns)
            channel = channels[sample.publisher]
            writer.add_message(channel, sent_ns, bytes(sample), sent_ns, sample.seq % 2**32)
        writer.finish()
    print(f"{count} messages in {path}")


if __name__ == "__main__":
    record(sys.argv[1], sys.argv[2], int(sys.argv[3]))
