"""Looks at a recording with the second version of the type, and publishes it again: replay.py FILE.

The messages go out as they came in, under the type that was recorded with them: subscribers
compare it with theirs, as with any publisher.
"""

import sys
from typing import Any

from mcap.reader import make_reader

import rnet

robot = rnet.load("proto/v2/robot.proto")
node = rnet.Node("replay")
publishers: dict[int, rnet.Publisher[Any]] = {}
with open(sys.argv[1], "rb") as file:
    for schema, channel, message in make_reader(file).iter_messages():
        if schema is None or schema.encoding != "protobuf":
            sys.exit(f"{sys.argv[1]}: the messages on {channel.topic} have no protobuf type")
        if channel.id not in publishers:
            recorded = rnet.load_set(schema.data)[schema.name]
            verdict = rnet.check(recorded, robot.Gripper)
            print(f"{channel.topic}, recorded and as we know it: {verdict}")
            if not verdict.compatible:
                sys.exit(1)
            gripper = robot.Gripper.FromString(message.data)
            print(f"the first message: {gripper.name}, {gripper.opening} m, {gripper.force} N")
            publishers[channel.id] = node.publisher(channel.topic, recorded, reliable=True)
            publishers[channel.id].wait_for_subscribers(timeout=10)
        publishers[channel.id].send(recorded.FromString(message.data))
