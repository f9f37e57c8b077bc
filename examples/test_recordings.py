"""`rnet` reads and plays recordings of other programs, and they read the files of `rnet bag`.

The other programs are the official packages for Python, `mcap` and `mcap-protobuf-support`.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

import rnet

RNET = Path(__file__).parents[1] / "target" / "debug" / "rnet"
LIMIT_S = 60
START_NS = 1_790_000_000_000_000_000

#: Ways to write a file; some omit data that readers use.
WAYS: dict[str, dict[str, Any]] = {
    "default": {},
    "small chunks": {"chunk_size": 100},
    "without chunks": {"use_chunking": False},
    "without statistics": {"use_statistics": False},
    "without channels in the summary": {"repeat_channels": False},
    "without CRCs": {"enable_crcs": False},
    "with CRCs of the data": {"enable_data_crcs": True},
}


def run(where: Path, *options: str) -> str:
    environment = dict(os.environ, RNET_DIR=str(where), RNET_DOMAIN="recordings")
    command = [str(RNET), *options]
    done = subprocess.run(command, env=environment, check=True, timeout=LIMIT_S, capture_output=True, text=True)
    return done.stdout


def write(path: Path, options: dict[str, Any]) -> None:
    from mcap.writer import CompressionType, Writer

    with path.open("wb") as file:
        writer = Writer(file, **{"compression": CompressionType.LZ4, **options})
        writer.start(profile="", library="test")
        schema = writer.register_schema("Count", "jsonschema", b"{}")
        channel = writer.register_channel("/count", "json", schema)
        for n in range(20):
            time_ns = START_NS + n * 1_000_000
            writer.add_message(channel, time_ns, json.dumps({"n": n}).encode(), time_ns, n)
        writer.add_attachment(0, 0, "note", "text/plain", b"hello")
        writer.add_metadata("robot", {"name": "left"})
        writer.finish()


@pytest.mark.parametrize("way", WAYS)
def test_files_of_the_official_package_are_read_and_played(tmp_path: Path, way: str) -> None:
    file = tmp_path / "run.mcap"
    write(file, WAYS[way])
    about = json.loads(run(tmp_path, "bag", "info", str(file), "--json"))
    assert (about["messages"], about["attachments"], about["problems"]) == (20, 1, [])
    assert about["metadata"] == [{"name": "robot", "values": {"name": "left"}}]
    assert about["topics"][0]["types"] == ["Count"]
    lines = run(tmp_path, "bag", "cat", str(file), "--json").splitlines()
    assert [json.loads(line)["data"]["n"] for line in lines] == list(range(20))
    assert json.loads(run(tmp_path, "bag", "check", str(file), "--json"))["problems"] == []
    played = json.loads(run(tmp_path, "play", str(file), "--json"))
    assert (played["messages"], played["failed"]) == (20, 0)


def test_protobuf_keeps_its_description(tmp_path: Path) -> None:
    from google.protobuf.timestamp_pb2 import Timestamp
    from mcap.reader import make_reader
    from mcap_protobuf.decoder import DecoderFactory
    from mcap_protobuf.writer import Writer

    file, new = tmp_path / "run.mcap", tmp_path / "new.mcap"
    with file.open("wb") as out, Writer(out) as writer:
        for n in range(20):
            time_ns = START_NS + n * 1_000_000
            writer.write_message("/time", Timestamp(seconds=n, nanos=7), time_ns, time_ns)
    with rnet.Node("clock", dir=str(tmp_path), domain="recordings") as node:
        heard = node.subscriber("/time", Timestamp, reliable=True, keep_all=True)
        played = json.loads(run(tmp_path, "play", str(file), "--rate", "max", "--json"))
        assert (played["messages"], played["failed"]) == (20, 0)
        assert [(one.seconds, one.nanos) for one in (heard.recv(timeout=LIMIT_S) for _ in range(20))] == [
            (n, 7) for n in range(20)
        ]
    line = run(tmp_path, "bag", "cat", str(file), "--start", "0.019", "--json")
    assert json.loads(line)["data"] == "1970-01-01T00:00:19.000000007Z"
    run(tmp_path, "bag", "filter", str(file), "--end", "0.01", "--remap", "/time:=/when", "--output", str(new))
    with new.open("rb") as made:
        found = list(make_reader(made, decoder_factories=[DecoderFactory()]).iter_decoded_messages())
    assert [(message.seconds, message.nanos) for *_, message in found] == [(n, 7) for n in range(10)]
    assert {channel.topic for _, channel, _, _ in found} == {"/when"}
