"""Recordings between us and others: rerun's reader and the official package `mcap` open ours, and we open and play what
Foxglove's SDK writes. What `mcap` itself writes is read and played in examples/test_recordings.py.
"""

from __future__ import annotations

import json
import random
import subprocess
from collections import Counter
from pathlib import Path

import foxglove
import numpy as np
import pytest
import rnet
from conftest import LIMIT_S
from foxglove.channels import PoseChannel, RawImageChannel
from foxglove.messages import Pose, RawImage, Vector3
from mcap.reader import make_reader
from mcap.records import Footer, Message
from mcap.stream_reader import StreamReader
from mcap_protobuf.decoder import DecoderFactory
from rerun.chunk import McapReader
from rnet.msgs import Image
from rnet.msgs import Pose as OurPose
from test_record import BUILD, program  # noqa: F401  the program `rnet` of this checkout, for all tests here

COUNT = 20
#: Incompressible, so that files have several chunks.
NOISE = random.Random(7).randbytes(200_000)
LEG = rnet.types.named_dtype("Leg", [("force", "f8"), ("q", "f4", 3)])


def rnet_program(*command: object) -> str:
    done = subprocess.run([BUILD / "rnet", *command], check=True, timeout=LIMIT_S, stdout=subprocess.PIPE, text=True)
    return done.stdout


@pytest.mark.parametrize("compress", ["zstd", "lz4", "none"])
def test_rerun_opens_what_we_record(tmp_path: Path, compress) -> None:
    path = tmp_path / "run.mcap"
    with rnet.Node("/arm") as node:
        poses, legs = node.publisher("/pose", OurPose), node.publisher("/leg", LEG)
        images = node.publisher("/image", Image)
        with rnet.record(path, "/pose", "/leg", "/image", compress=compress) as recording:
            for n in range(COUNT):
                pose = OurPose()
                pose.position.x = n
                poses.send(pose)
                legs.send(np.array((n, [1, 2, n]), LEG))
                images.send(Image.from_array(np.full((4, 6, 3), n, np.uint8), "rgb8"))
    assert recording.report.missing == 0
    reader = McapReader(path)
    about = reader.info()
    assert (about.profile, about.message_count, about.attachment_count) == ("rnet", 3 * COUNT, 0)
    assert {channel.topic: channel.message_count for channel in about.channels} == dict.fromkeys(
        ("/pose", "/leg", "/image"), COUNT
    )
    columns: dict[str, list[str]] = {}
    for chunk in reader.stream().to_chunks():
        if chunk.num_rows == COUNT:
            columns[chunk.entity_path] = chunk.to_record_batch().schema.names
    # Rerun shows images as pictures, reads protobuf messages by their description, and plain ones as bytes.
    assert "Image:buffer" in columns["/image"]
    assert "foxglove.Pose:message" in columns["/pose"]
    assert "McapMessage:data" in columns["/leg"]


def test_what_the_sdk_of_foxglove_writes_is_read_here(tmp_path: Path) -> None:
    path = tmp_path / "theirs.mcap"
    with foxglove.open_mcap(path):
        poses, images = PoseChannel("/pose"), RawImageChannel("/image")
        for n in range(COUNT):
            poses.log(Pose(position=Vector3(x=n / 2)), log_time=n * 1_000_000)
            image = RawImage(width=2, height=1, encoding="rgb8", step=6, data=bytes([n] * 6))
            images.log(image, log_time=n * 1_000_000)
    recording = rnet.open_recording(path)
    assert recording.topics == ["/image", "/pose"] and recording.library.startswith("foxglove-sdk-python")
    assert recording["/pose"].types == ["foxglove.Pose"]
    assert (recording["/pose"].array("position.x") == np.arange(COUNT) / 2).all()
    assert (recording["/pose"].times().astype(int) == np.arange(COUNT) * 1_000_000).all()
    assert (recording["/image"].array("width") == 2).all()
    assert [message.value.data[0] for message in recording["/image"]] == list(range(COUNT))
    rnet_program("bag", "check", path)
    with rnet.Node("/viewer") as node:
        heard = {
            "/pose": node.subscriber("/pose", OurPose, reliable=True, keep_all=True),
            "/image": node.subscriber("/image", reliable=True, keep_all=True),
        }
        played = json.loads(rnet_program("play", path, "--rate", "max", "--json"))
        assert (played["messages"], played["failed"]) == (2 * COUNT, 0)
        for n in range(COUNT):
            assert heard["/pose"].recv(timeout=LIMIT_S).position.x == n / 2
            assert bytes([n] * 6) in bytes(heard["/image"].recv(timeout=LIMIT_S))


def recorded(path: Path, **options) -> list[Path]:
    """The files of a recording of COUNT messages on each of three topics: protobuf, plain, bytes."""
    with rnet.Node("/arm") as node:
        poses, legs = node.publisher("/pose", OurPose), node.publisher("/leg", LEG)
        # A subscriber with unread messages makes sure that the recorder is never too late.
        raw = node.publisher("/raw", bytes, reliable=True, large_depth=COUNT)
        _unread = node.subscriber("/raw", reliable=True, keep_all=True)
        raw.wait_for_subscribers(1, timeout=LIMIT_S)
        with rnet.record(path, "/pose", "/leg", "/raw", **options) as recording:
            for n in range(COUNT):
                pose = OurPose()
                pose.position.x = n
                poses.send(pose)
                legs.send(np.array((n, [1, 2, n]), LEG))
                raw.send(b"%d" % n + NOISE)
    assert recording.report.missing == 0
    return recording.report.files


def made(kind: str, where: Path) -> tuple[list[Path], int]:
    """Files of a kind, and of how many messages a topic they are together."""
    run, out = where / "run.mcap", where / "out.mcap"
    count = COUNT
    if kind == "parts":
        files = recorded(run, split_size=1 << 20, compress="none")
        assert len(files) > 1
    elif kind == "raw":
        files = recorded(run, raw=True)
    else:
        files = recorded(run)
    if kind == "recovered":
        # Truncated after its last message, so only the index is lost.
        data = run.read_bytes()
        run.write_bytes(data[: len(data) - 100])
        rnet_program("bag", "recover", run, "-o", out)
        files = [out]
    elif kind == "merged":
        (where / "again").mkdir()
        files += recorded(where / "again" / "run.mcap")
        rnet_program("bag", "merge", *files, "-o", out)
        files, count = [out], 2 * COUNT
    elif kind == "split":
        rnet_program("bag", "split", run, "--size", "1000000", "-o", out)
        files = sorted(where.glob("out*.mcap"))
        assert len(files) > 1
    elif kind == "filtered":
        rnet_program("bag", "filter", run, "--exclude", "/none", "--remap", "/raw:=/bytes", "-o", out)
        files = [out]
    return files, count


@pytest.mark.parametrize("kind", ["one file", "parts", "raw", "recovered", "merged", "split", "filtered"])
def test_readers_of_others_open_each_kind_of_file(tmp_path: Path, kind: str) -> None:
    """The official one with all CRCs, rerun's and Foxglove's; `test_blackbox.py` has it of files of a black box."""
    files, count = made(kind, tmp_path)
    found: dict[str, list[bytes]] = {}
    encodings: dict[str, str] = {}
    for path in files:
        with path.open("rb") as file:
            reader = make_reader(file, validate_crcs=True)
            summary = reader.get_summary()
            assert summary is not None and summary.statistics is not None
            by_index = list(reader.iter_messages())
            assert summary.statistics.message_count == len(by_index)
            assert [one.name for one in reader.iter_metadata()].count("rnet.recording") >= 1
        # In file order, with the CRC of the whole file.
        with path.open("rb") as file:
            records = list(StreamReader(file, validate_crcs=True).records)
        assert sum(isinstance(one, Message) for one in records) == len(by_index)
        assert isinstance(records[-1], Footer) and records[-1].summary_crc != 0
        for _, channel, message in by_index:
            if not channel.topic.startswith("/_rnet/"):
                found.setdefault(channel.topic, []).append(message.data)
                encodings[channel.topic] = channel.message_encoding
    bytes_topic = "/bytes" if kind == "filtered" else "/raw"
    topics = ("/pose", "/leg", bytes_topic)
    assert {topic: len(of) for topic, of in found.items()} == dict.fromkeys(topics, count)
    assert sorted(data.removesuffix(NOISE) for data in found[bytes_topic]) == sorted(
        b"%d" % n for n in range(COUNT) for _ in range(count // COUNT)
    )
    plain = "rnet-plain" if kind == "raw" else encodings["/leg"]
    assert encodings == {"/pose": "protobuf", "/leg": plain, bytes_topic: "bytes"}
    assert rerun_finds(files) == (dict.fromkeys(topics, count), count)
    # Foxglove's protobuf reader, with the description from the file.
    xs = []
    for path in files:
        with path.open("rb") as file:
            decoded = make_reader(file, decoder_factories=[DecoderFactory()]).iter_decoded_messages(["/pose"])
            xs += [pose.position.x for _, _, _, pose in decoded]
    assert sorted(xs) == sorted(n for n in range(COUNT) for _ in range(count // COUNT))


def rerun_finds(files: list[Path]) -> tuple[dict[str, int], int]:
    """Messages by topic, as rerun's reader counts them, and how many poses it has read."""
    counts: Counter[str] = Counter()
    poses = 0
    for path in files:
        reader = McapReader(path)
        for channel in reader.info().channels:
            if not channel.topic.startswith("/_rnet/"):
                counts[channel.topic] += channel.message_count or 0
        for chunk in reader.stream().to_chunks():
            if "foxglove.Pose:message" in chunk.to_record_batch().schema.names:
                poses += chunk.num_rows
    return dict(counts), poses
