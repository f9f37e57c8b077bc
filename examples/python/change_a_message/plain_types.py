"""A plain type that grew by a field: old and new structs on one topic, each way."""

import ctypes

import rnet


class WheelV1(ctypes.Structure):
    _rnet_name_ = "Wheel"
    _fields_ = [("speed", ctypes.c_double), ("time_ns", ctypes.c_int64)]


class WheelV2(ctypes.Structure):
    _rnet_name_ = "Wheel"
    _fields_ = [*WheelV1._fields_, ("torque", ctypes.c_double)]


with rnet.Node("wheels") as node:
    readers = {kind: node.subscriber("/wheel", kind) for kind in (WheelV1, WheelV2)}
    for wheel in (WheelV1(1.5, 10), WheelV2(1.5, 20, 0.25)):
        with node.publisher("/wheel", type(wheel)) as publisher:
            publisher.wait_for_subscribers(2)
            publisher.send(wheel)
            for kind, reader in readers.items():
                heard = reader.recv()
                fields = {name: getattr(heard, name) for name, *_ in kind._fields_}
                print(f"{type(wheel).__name__} read as {kind.__name__}: {fields}")
