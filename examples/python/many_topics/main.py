"""One node, eight topics, one wait for all of them.

Each topic carries the readings of one sensor: a 64-bit float, little-endian. A node that waits for
eight topics sleeps in a single wait, because a process has one doorbell per waiting thread, not per
topic. It needs every reading, so it uses keep_all: the default keeps the last ten unread messages.
"""

import struct
import threading

import rnet

SENSORS = 8
READINGS = 100
READING = struct.Struct("<d")


def measure(sensors: list[rnet.Publisher]) -> None:
    """Sensor n reads 10 n, 10 n + 1, 10 n, …"""
    for sensor in sensors:
        sensor.wait_for_subscribers()
    for turn in range(READINGS):
        for n, sensor in enumerate(sensors):
            sensor.send(READING.pack(10.0 * n + turn % 2))


def main() -> None:
    node = rnet.Node("many_topics")
    readers = [node.subscriber(f"/sensor_{n}", keep_all=True) for n in range(SENSORS)]
    sensors = [node.publisher(f"/sensor_{n}") for n in range(SENSORS)]
    measuring = threading.Thread(target=measure, args=[sensors])
    measuring.start()

    readings: dict[str, list[float]] = {reader.topic: [] for reader in readers}
    for reader, message in rnet.Merge(*readers):
        readings[reader.topic] += READING.unpack(message)
        if all(len(received) == READINGS for received in readings.values()):
            break
    for topic, received in readings.items():
        print(f"{topic}: {len(received)} readings, mean {sum(received) / len(received):.1f}")
    measuring.join()


main()
