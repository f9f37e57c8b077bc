"""The black box: Python requests a file, and other programs read it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import rnet
from mcap.reader import make_reader
from rerun.chunk import McapReader
from test_record import BUILD, program  # noqa: F401  the program `rnet` of this checkout, for all tests here


def test_a_program_triggers_and_readers_of_others_open_the_file(tmp_path: Path) -> None:
    command = [BUILD / "rnet", "blackbox", "run", "-o", tmp_path, "--after", "0.1"]
    with rnet.Node("/arm") as node, subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as box:
        assert box.stderr is not None
        assert "keeps up to" in box.stderr.readline()
        angles = node.publisher("/angles", bytes)
        for angle in range(100):
            angles.send(b"%d" % angle)
        status = json.loads(node.call("/blackbox/trigger", b"it stopped by itself"))
        assert 0 < status["memory_bytes"] <= 256 << 20 and Path(status["folder"]) == tmp_path
        said = ""
        while " is written" not in said:
            said = box.stderr.readline()
            assert said, "the box has ended"
        box.terminate()
        box.wait(60)
    (path,) = tmp_path.glob("*.mcap")
    with path.open("rb") as file:
        reader = make_reader(file, validate_crcs=True)
        summary = reader.get_summary()
        assert summary is not None and summary.statistics is not None
        sent = [message.data for _, channel, message in reader.iter_messages() if channel.topic == "/angles"]
        assert sent == [b"%d" % angle for angle in range(100)]
        triggers = [one.metadata for one in reader.iter_metadata() if one.name == "rnet.trigger"]
        assert [one["why"] for one in triggers] == ["it stopped by itself"]
        graph = json.loads(next(iter(reader.iter_attachments())).data)
        assert "/arm" in [of["node"] for of in graph["nodes"]]
    found = {channel.topic: channel.message_count for channel in McapReader(path).info().channels}
    assert found["/angles"] == 100
