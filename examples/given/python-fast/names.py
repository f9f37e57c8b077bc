"""A node that sends the page's messages: on one topic first raw bytes, then structures."""

import asyncio  # noqa: F401
import struct as real_struct
import types

import numpy as np
import rnet

node = rnet.Node("fast")
feeder = rnet.Node("feeder")
raw = feeder.publisher("/raw", reliable=True)
IMU = rnet.types.named_dtype("Imu", [("stamp_ns", "u8"), ("acc", "f4", 3)])
typed = feeder.publisher("/imu", IMU, reliable=True)
reading = np.zeros(1, IMU)
subscriber = node.subscriber("/raw")
watch = node.state.watch("/arm")


def feed(_: object) -> None:
    raw.send(real_struct.pack("<QI", 1, 2) + bytes(10))
    typed.send_many(reading)
    feeder.state["/arm/mode"] = "idle"


feeding = feeder.timer(0.02, feed)
struct = types.SimpleNamespace(unpack_from=until(3, real_struct.unpack_from))
print = until(3, print)  # noqa: A001
handle = until(3, lambda message: None)
