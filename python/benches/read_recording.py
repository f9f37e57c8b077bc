"""A field of a million messages of a recording as a numpy array, beside the official Python reader.

    .venv/bin/python python/benches/read_recording.py [MESSAGES] [--json]

The recording is written with the official writer: `foxglove.Pose` as protobuf, and a plain struct of the same
numbers. The official reader decodes protobuf with `mcap-protobuf-support`; plain messages it gives as bytes, of which
the number is unpacked. Each is timed three times, and the fastest is shown. Build the package with `make build`.
"""

from __future__ import annotations

import json
import struct
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import rnet
from mcap.reader import make_reader
from mcap.writer import Writer
from mcap_protobuf.decoder import DecoderFactory
from mcap_protobuf.schema import build_file_descriptor_set
from rnet.msgs import Pose

ROUNDS = 3
NAMES = ("px", "py", "pz", "x", "y", "z", "w")
LAYOUT = {
    "kind": "plain", "name": "P", "size": 56, "align": 8,
    "fields": [{"name": name, "offset": 8 * n, "type": "f64"} for n, name in enumerate(NAMES)],
}  # fmt: skip


def write(path: Path, messages: int) -> None:
    with path.open("wb") as out:
        writer = Writer(out)
        writer.start()
        described = build_file_descriptor_set(Pose).SerializeToString()
        schema = writer.register_schema("foxglove.Pose", "protobuf", described)
        pose = writer.register_channel("/pose", "protobuf", schema)
        schema = writer.register_schema("P", "rnet-plain", json.dumps(LAYOUT).encode())
        plain = writer.register_channel("/plain", "rnet-plain", schema)
        message = Pose()
        for n in range(messages):
            numbers = [n + k / 8 for k in range(7)]
            message.position.x, message.position.y, message.position.z = numbers[:3]
            message.orientation.x, message.orientation.y, message.orientation.z, message.orientation.w = numbers[3:]
            for channel, data in ((pose, message.SerializeToString()), (plain, struct.pack("<7d", *numbers))):
                writer.add_message(channel, log_time=n * 1000, publish_time=n * 1000, data=data)
        writer.finish()  # type: ignore[no-untyped-call]


def timed(read: Callable[[], Any], messages: int) -> float:
    best = float("inf")
    for _ in range(ROUNDS):
        start = time.perf_counter()
        array = read()
        best = min(best, time.perf_counter() - start)
        assert len(array) == messages and array[-1] == messages - 1
    return best


def official(path: Path, topic: str) -> Any:
    with path.open("rb") as file:
        reader = make_reader(file, decoder_factories=[DecoderFactory()])
        if topic == "/pose":
            return np.array([decoded.decoded_message.position.x for decoded in reader.iter_decoded_messages([topic])])
        return np.array([struct.unpack_from("<d", message.data)[0] for _, _, message in reader.iter_messages([topic])])


def ours(path: Path, topic: str) -> Any:
    with rnet.open_recording(path) as recording:
        return recording[topic].array("position.x" if topic == "/pose" else "px")


def main() -> None:
    as_json = "--json" in sys.argv
    numbers = [argument for argument in sys.argv[1:] if argument != "--json"]
    messages = int(numbers[0]) if numbers else 1_000_000
    figures = {}
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "run.mcap"
        write(path, messages)
        if not as_json:
            print(f"{messages} messages a topic, {path.stat().st_size / 1e6:.0f} MB")
        for topic in ("/pose", "/plain"):
            our, their = (timed(partial(read, path, topic), messages) for read in (ours, official))
            figures[topic] = {"messages": messages, "rnet_s": our, "mcap_s": their, "times": their / our}
            if not as_json:
                print(f"{topic}: rnet {our:.3f} s, mcap {their:.3f} s, {their / our:.0f} times as fast")
    if as_json:
        print(json.dumps(figures))


if __name__ == "__main__":
    main()
