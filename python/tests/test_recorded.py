"""Reading recordings in Python: our own, and files of the official library."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import rnet
from google.protobuf.timestamp_pb2 import Timestamp
from mcap.writer import CompressionType, Writer
from mcap_protobuf.schema import build_file_descriptor_set
from rnet.msgs import Image, Pose
from test_record import program  # noqa: F401  the program `rnet` of this checkout, for all tests here

PLAIN = {
    "kind": "plain",
    "name": "Pose",
    "size": 32,
    "align": 8,
    "fields": [
        {"name": "x", "offset": 0, "type": "f64"},
        {"name": "at", "offset": 8, "type": {"struct": {"name": "At", "size": 4, "align": 2, "fields": [
            {"name": "n", "offset": 0, "type": "i16"}, {"name": "_pad", "offset": 2, "type": "u16"}]}}},
        {"name": "on", "offset": 12, "type": "bool"},
        {"name": "q", "offset": 16, "type": {"array": {"of": {"array": {"of": "u16", "len": 2}}, "len": 2}}},
        {"name": "_end", "offset": 24, "type": "u64"},
    ],
}  # fmt: skip
POSE = np.dtype({
    "names": ["x", "n", "on", "q"], "formats": ["<f8", "<i2", "?", ("<u2", (2, 2))], "offsets": [0, 8, 12, 16], "itemsize": 32,
})  # fmt: skip
START_NS = 1_790_000_000_000_000_000
LEGS = rnet.types.load_proto_text(
    """syntax = "proto3"; package t;
    message Leg { double force = 1; optional int32 turns = 2; optional bool on = 3; repeated float ranges = 4; string name = 5; }"""
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """`/pose`, plain, `/leg` and `/stamp`, protobuf, `/json` and `/bytes`: 100 of each, 1 ms apart."""
    path = tmp_path / "run.mcap"
    with path.open("wb") as out:
        writer = Writer(out, chunk_size=2000, compression=CompressionType.ZSTD)
        writer.start(profile="test", library="by hand")
        schema = writer.register_schema("Pose", "rnet-plain", json.dumps(PLAIN).encode())
        pose = writer.register_channel("/pose", "rnet-plain", schema, {"rnet.node": "/arm"})
        described = build_file_descriptor_set(LEGS.Leg).SerializeToString()
        leg = writer.register_channel("/leg", "protobuf", writer.register_schema("t.Leg", "protobuf", described))
        described = build_file_descriptor_set(Timestamp).SerializeToString()
        schema = writer.register_schema("google.protobuf.Timestamp", "protobuf", described)
        stamp = writer.register_channel("/stamp", "protobuf", schema)
        text = writer.register_channel("/json", "json", 0)
        raw = writer.register_channel("/bytes", "bytes", 0)
        writer.add_metadata("note", {"robot": "seven"})
        for n in range(100):
            pose_bytes = np.zeros((), POSE)
            pose_bytes["x"], pose_bytes["n"], pose_bytes["on"], pose_bytes["q"] = n / 2, -n, n % 2, [[n, 1], [2, 3]]
            message = LEGS.Leg(force=n / 4, name=f"leg {n}")
            if n % 2:
                message.turns, message.on = -n, True
                message.ranges.extend([0.5, n])
            for channel, data in (
                (pose, pose_bytes.tobytes()),
                (leg, message.SerializeToString()),
                (stamp, Timestamp(seconds=n, nanos=7).SerializeToString()),
                (text, json.dumps({"n": n}).encode()),
                (raw, b"message %d" % n),
            ):
                at = START_NS + n * 1_000_000
                writer.add_message(channel, log_time=at, publish_time=at - 5, sequence=n, data=data)
        writer.finish()
    return path


def test_fields_are_arrays_over_time(file):
    with rnet.open_recording(file) as recording:
        pose, leg = recording["/pose"], recording["/leg"]
        numbers = np.arange(100)
        assert (pose.array("x") == numbers / 2).all() and pose.array("x").dtype == "f8"
        assert (pose.array("at.n") == -numbers).all() and pose.array("at.n").dtype == "i2"
        assert (pose.array("on") == numbers % 2).all() and pose.array("on").dtype == bool
        assert pose.array("q").shape == (100, 2, 2) and (pose.array("q")[:, 0, 0] == numbers).all()
        assert (pose.array("q[1][1]") == 3).all()
        assert (leg.array("force") == numbers / 4).all()
        assert (recording["/stamp"].array("seconds") == numbers).all()
        times = pose.times()
        assert times.dtype == "M8[ns]" and (times.astype(int) == START_NS + numbers * 1_000_000).all()
        assert (pose.array("x", start=0.01, end=0.02) == numbers[10:20] / 2).all()
        series = pose.series("x", "at.n")
        assert len(series) == 100 and (series["at.n"] == -numbers).all()
        assert (series.times - series.sent == np.timedelta64(5, "ns")).all()
        # The array belongs to the caller.
        array = pose.array("x")
        array += 1
        assert array[0] == 1 and pose.array("x")[0] == 0


def test_what_a_message_does_not_have_is_nan_or_what_is_asked_for(file):
    leg = rnet.open_recording(file)["/leg"]
    ranges = leg.array("ranges[1]")
    assert np.isnan(ranges[::2]).all() and (ranges[1::2] == np.arange(1, 100, 2)).all()
    with pytest.raises(rnet.errors.ReadFailedError, match=r"50 of 100 messages of /leg have no turns, .* array\('turns', absent=0\)"):
        leg.array("turns")
    assert (leg.array("turns", absent=7)[:4] == [7, -1, 7, -3]).all()
    assert (leg.array("ranges[0]", absent=-1)[:2] == [-1, 0.5]).all()
    assert (leg.series("turns").absent["turns"] == np.arange(0, 100, 2)).all()


def test_a_frame_has_all_numbers_and_knows_what_is_missing(file):
    recording = rnet.open_recording(file)
    frame = recording["/leg"].frame()
    assert list(frame.columns) == ["force", "turns", "on"]
    assert frame["turns"].isna().sum() == 50 and frame["turns"].dtype == "Int32" and frame["turns"].iloc[3] == -3
    assert frame["on"].isna().sum() == 50 and frame["on"].dtype == "boolean"
    assert frame.index.name == "time" and str(frame.index.tz) == "UTC" and frame.index[0].value == START_NS
    frame = recording["/pose"].frame()
    assert list(frame.columns) == ["x", "at.n", "on", "q[0][0]", "q[0][1]", "q[1][0]", "q[1][1]"]
    assert list(recording["/pose"].frame("x", start=0.09).x) == [n / 2 for n in range(90, 100)]


def test_a_field_that_a_type_has_gained_is_missing_in_older_messages(tmp_path):
    path = tmp_path / "grip.mcap"
    head = 'syntax = "proto3"; package robot; message Grip { string name = 1; double width = 2; '
    versions = [rnet.types.load_proto_text(head + "}"), rnet.types.load_proto_text(head + "double temp = 4; uint32 count = 5; }")]
    with path.open("wb") as out:
        writer = Writer(out)
        writer.start()
        for n, types in enumerate(versions):
            described = build_file_descriptor_set(types.Grip).SerializeToString()
            schema = writer.register_schema("robot.Grip", "protobuf", described)
            channel = writer.register_channel("/grip", "protobuf", schema, {"rnet.node": f"/n{n}"})
            message = types.Grip(name="g", width=n, **({"temp": 40, "count": 3} if n else {}))
            writer.add_message(channel, log_time=n, publish_time=n, data=message.SerializeToString())
        writer.finish()
    grip = rnet.open_recording(path)["/grip"]
    assert grip.fields() == ["width", "temp", "count"]
    temp = grip.array("temp")
    assert np.isnan(temp[0]) and temp[1] == 40 and list(grip.array("count", absent=0)) == [0, 3]
    with pytest.raises(rnet.errors.ReadFailedError, match="1 of 2 messages of /grip have no count"):
        grip.array("count")
    frame = grip.frame()
    assert list(frame.columns) == ["width", "temp", "count"] and frame["count"].isna().sum() == 1


def test_messages_have_their_types(file):
    with rnet.open_recording(file) as recording:
        messages = list(recording.messages())
        assert len(messages) == 500 and [m.received_ns for m in messages] == sorted(m.received_ns for m in messages)
        leg = list(recording["/leg"])[3]
        assert (leg.topic, leg.type_name, leg.node, leg.seq) == ("/leg", "t.Leg", None, 3)
        assert (leg.value.force, leg.value.turns, leg.value.name) == (0.75, -3, "leg 3")
        assert leg.sent_ns == leg.received_ns - 5 == START_NS + 3_000_000 - 5
        pose = next(iter(recording["/pose"]))
        assert pose.node == "/arm" and pose.value["at"]["n"] == 0 and pose.value.dtype.itemsize == 32
        assert pose.value["q"].tolist() == [[0, 1], [2, 3]]
        assert [m.value for m in recording.messages("/json", start=0.098)] == [{"n": 98}, {"n": 99}]
        assert [m.value for m in recording["/bytes"].messages(end=0.001)] == [b"message 0"]
        two = [m.topic for m in recording.messages("/json", "/bytes")]
        assert len(two) == 200 and set(two) == {"/json", "/bytes"}
    assert leg.value.force == 0.75


def test_it_says_what_is_in_it(file):
    recording = rnet.open_recording(str(file))
    assert recording.topics == list(recording) == ["/bytes", "/json", "/leg", "/pose", "/stamp"]
    assert len(recording) == 5 and "/leg" in recording and "/arm" not in recording
    assert (recording.profile, recording.library, recording.metadata) == ("test", "by hand", {"note": {"robot": "seven"}})
    assert (recording.start_ns, recording.end_ns) == (START_NS, START_NS + 99_000_000)
    assert recording.problems == [] and recording.path == str(file)
    pose = recording["/pose"]
    assert (pose.name, len(pose), pose.types, pose.nodes) == ("/pose", 100, ["Pose"], ["/arm"])
    assert pose.fields() == ["x", "at.n", "on", "q"] and recording["/bytes"].fields() == []
    assert "5 topics" in repr(recording) and "/pose: 100 messages, Pose" in repr(pose)


def test_errors_say_what_there_is(file, tmp_path):
    recording = rnet.open_recording(file)
    for call, words in (
        (lambda: recording["/arm"], "no topic '/arm'; it has /bytes, /json, /leg, /pose, /stamp"),
        (lambda: recording.messages("/arm"), "no topic '/arm'"),
        (lambda: recording["/pose"].array("y"), 'field "y" of /pose .* Pose has x, at, on, q'),
        (lambda: recording["/leg"].array("froce"), "t.Leg has force, turns"),
        (lambda: recording["/leg"].array("ranges"), r"ranges\[0\]"),
        (lambda: recording["/json"].array("n"), '"json"; fields can be read only from protobuf and plain'),
        (lambda: rnet.open_recording(tmp_path / "none.mcap"), "none.mcap.*No such file"),
        (lambda: rnet.open_recording(__file__), "not an MCAP file"),
    ):
        with pytest.raises(rnet.errors.ReadFailedError, match=words):
            call()
    recording.close()
    with pytest.raises(rnet.ClosedError, match=r"run.mcap is closed"):
        recording["/pose"].array("x")


def test_bytes_that_are_no_message_are_told(tmp_path):
    path = tmp_path / "bad.mcap"
    with path.open("wb") as out:
        writer = Writer(out)
        writer.start()
        schema = writer.register_schema("Pose", "rnet-plain", json.dumps(PLAIN).encode())
        pose = writer.register_channel("/pose", "rnet-plain", schema)
        bad = writer.register_channel("/bad", "protobuf", writer.register_schema("t.Bad", "protobuf", b"\xff"))
        for n, data in enumerate([bytes(32), bytes(31), bytes(32)]):
            writer.add_message(pose, log_time=n, publish_time=n, data=data)
        writer.add_message(bad, log_time=9, publish_time=9, data=b"")
        writer.finish()
    recording = rnet.open_recording(path)
    with pytest.warns(rnet.errors.DamagedRecordingWarning, match=r"bad.mcap: message 0 of /pose.*31 bytes"):
        assert len(recording["/pose"].array("x")) == 2
    with pytest.raises(rnet.errors.MalformedError, match="/pose cannot be decoded as Pose: it has 31 bytes"):
        _ = list(recording["/pose"])[1].value
    with pytest.raises(rnet.errors.ReadFailedError, match=r"type t.Bad of /bad"):
        _ = next(iter(recording["/bad"])).value
    with pytest.raises(rnet.errors.ReadFailedError, match=r"type of /bad"):
        recording["/bad"].fields()


def test_what_is_damaged_is_left_out_with_a_warning(file):
    whole = file.read_bytes()
    damaged = bytearray(whole)
    damaged[whole.index(b"zstd") + 300] ^= 1  # in the first chunk
    file.write_bytes(damaged)
    recording = rnet.open_recording(file)
    with pytest.warns(rnet.errors.DamagedRecordingWarning, match="at byte"):
        assert 200 < len(list(recording.messages())) < 500
    with pytest.warns(rnet.errors.DamagedRecordingWarning, match="at byte"):
        assert 40 < len(recording["/pose"].array("x")) < 100
    file.write_bytes(whole[: len(whole) // 2])
    cut = rnet.open_recording(file)
    assert cut.problems and "the file ends" in cut.problems[0]
    assert 0 < len(list(cut["/leg"])) < 100


def test_our_own_recording_is_read(tmp_path):
    path = tmp_path / "own.mcap"
    leg = rnet.types.named_dtype("Leg", [("force", "f8"), ("q", "f4", 3)])
    with rnet.Node("/arm") as node:
        poses = node.publisher("/pose", Pose)
        legs = node.publisher("/legs", leg)
        images = node.publisher("/image", Image)
        with rnet.record(path, "/pose", "/legs", "/image", raw=True):
            for n in range(10):
                pose = Pose()
                pose.position.x = n
                poses.send(pose)
                legs.send(np.array((n, [1, 2, n]), leg))
                images.send(Image.from_array(np.full((4, 6, 3), n, np.uint8), "rgb8"))
    recording = rnet.open_recording(path)
    assert recording.profile == "rnet" and recording.metadata["rnet.losses"]["total"] == "0"
    assert recording.topics == ["/image", "/legs", "/pose"] and recording["/pose"].nodes == ["/arm"]
    assert recording["/pose"].array("position.x").tolist() == list(range(10))
    assert recording["/legs"].array("q")[:, 2].tolist() == list(range(10))
    assert recording["/image"].array("width").tolist() == [6] * 10
    assert [message.value["force"] for message in recording["/legs"]] == list(range(10))
    assert [message.value.position.x for message in recording["/pose"]] == list(range(10))
    assert [message.value.array[0, 0, 0] for message in recording["/image"]] == list(range(10))
    assert [message.seq for message in recording["/image"]] == list(range(10))


def test_numpy_is_needed_for_arrays_alone(file):
    script = f"""
import sys
sys.modules["numpy"] = None
import rnet
recording = rnet.open_recording({str(file)!r})
assert [m.value.force for m in recording["/leg"]][2] == 0.5
try:
    recording["/leg"].array("force")
except rnet.errors.MissingNumpyError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, encoding="utf-8", check=True)
    assert "numpy" in done.stdout
