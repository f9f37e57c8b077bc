"""Reads a recording with the second version of the type, and publishes it again: replay.py FILE.

The messages are published unchanged, with the recorded type: subscribers compare it with theirs, as
with any publisher.
"""

import sys
import time
from typing import Any

from mcap.reader import make_reader
from mcap.records import Channel, Schema

import rnet

robot = rnet.load_proto("proto/v2/robot.proto")


def recorded_type(schema: Schema | None, channel: Channel, first: bytes) -> Any:
    """The recorded message class, if our class is compatible with it."""
    if schema is None or schema.encoding != "protobuf":
        sys.exit(f"the messages on {channel.topic} were recorded without a protobuf type")
    recorded = rnet.types.load_descriptor_set(schema.data)[schema.name]
    verdict = rnet.types.compare_types(recorded, robot.Gripper)
    print(f"{channel.topic}, recorded type and current type: {verdict}")
    if not verdict:
        sys.exit(1)
    gripper = robot.Gripper.FromString(first)
    print(f"first message: {gripper.name}, {gripper.opening} m, {gripper.force} N")
    return recorded


def replay(path: str, node: rnet.Node) -> None:
    types: dict[int, Any] = {}
    publishers: dict[int, rnet.Publisher[Any]] = {}
    ahead_ns = 0
    with open(path, "rb") as file:
        for schema, channel, message in make_reader(file).iter_messages():
            if channel.id not in types:
                types[channel.id] = recorded_type(schema, channel, message.data)
                publishers[channel.id] = node.publisher(channel.topic, types[channel.id])
                try:
                    publishers[channel.id].wait_for_subscribers(timeout=10)
                except (rnet.IncompatibleTypeError, rnet.WaitTimeoutError) as error:
                    print(error, file=sys.stderr)  # later subscribers are served
                ahead_ns = ahead_ns or rnet.now_ns() - message.publish_time
            wait_ns = message.publish_time + ahead_ns - rnet.now_ns()
            time.sleep(max(0, wait_ns) / 1e9)  # sleep: at the recorded intervals
            publishers[channel.id].send(types[channel.id].FromString(message.data))


if __name__ == "__main__":
    with rnet.Node("replay") as node:
        replay(sys.argv[1], node)
