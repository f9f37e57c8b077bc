"""Recordings between us and others: rerun's reader opens ours, and we open what Foxglove's SDK writes.

Foxglove's reader for Python is the package `mcap`, which examples/test_recordings.py has.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import foxglove
import numpy as np
import pytest
import rnet
from foxglove.channels import PoseChannel, RawImageChannel
from foxglove.messages import Pose, RawImage, Vector3
from rerun.chunk import McapReader
from rnet.msgs import Image
from rnet.msgs import Pose as OurPose
from test_record import RELEASE, program  # noqa: F401  the program `rnet` of this checkout, for all tests here

COUNT = 20
LEG = rnet.named("Leg", [("force", "f8"), ("q", "f4", 3)])


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
    # Images are pictures to it, messages of protobuf are read by their description, and plain ones are bytes.
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
    subprocess.run([RELEASE / "rnet", "bag", "check", path], check=True, timeout=60)
