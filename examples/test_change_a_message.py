"""Checks the text of docs/guide/change-a-message.md; ``test_pages`` runs its code."""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from played_page import LIMIT_S, ROOT, Play, Terminal

import rnet

PAGE = ROOT / "docs" / "guide" / "change-a-message.md"
RNET = ROOT / "target" / "debug" / "rnet"
HERE = ROOT / "examples" / "python" / "change_a_message"


@pytest.fixture
def play(played: Callable[[Path], Play]) -> Play:
    """The player after the page."""
    return played(PAGE)


def test_the_page_ends_its_programs(play: Play) -> None:
    assert not play.terminals


def test_rules_of_the_page_exist_with_the_same_verdict() -> None:
    """Compares with the table of docs/design/types.md."""
    verdicts = {"yes": "compatible", "no": "incompatible"}
    rows = re.findall(r"^\| [^|]+ \| (yes|no) \| `([a-z_.]+)` \|$", PAGE.read_text(), re.MULTILINE)
    assert len(rows) == 10
    rules = (ROOT / "docs" / "design" / "types.md").read_text()
    for word, rule in rows:
        assert f"| `{rule}` | {verdicts[word]} |" in rules, rule


def test_compatible_versions_continue_beside_an_incompatible_one(play: Play) -> None:
    """Publishers of all three versions, readers of two; each side gets the incompatible field by name."""
    versions = {v: rnet.load_proto(HERE / "proto" / v / "robot.proto").Gripper for v in ("v1", "v2", "v3")}
    with contextlib.ExitStack() as stack:

        def node(name: str) -> rnet.Node:
            made = rnet.Node(name, dir=play.environment["RNET_DIR"], domain="versions")
            return stack.enter_context(made)

        readers = {v: node(f"reads_{v}").subscriber("/gripper", versions[v]) for v in ("v1", "v2")}
        writers = {v: node(f"says_{v}").publisher("/gripper", kind) for v, kind in versions.items()}
        for v in ("v1", "v2"):
            writers[v].wait_for_subscribers(2, timeout=LIMIT_S)
        refused: dict[str, rnet.IncompatibleTypeError] = {}
        while len(refused) < 2:
            with pytest.raises(rnet.IncompatibleTypeError) as raised:
                writers["v3"].wait_for_subscribers(1, timeout=LIMIT_S)
            refused[raised.value.subscriber_node] = raised.value
        for v, kind in versions.items():
            writers[v].send(kind(name=v, mode=1, force=2.5))
        for v, reader in readers.items():
            heard: set[str] = set()
            errors: list[rnet.IncompatibleTypeError] = []
            while len(heard) < 2 or not errors:
                try:
                    gripper = reader.recv(timeout=LIMIT_S)
                except rnet.IncompatibleTypeError as error:
                    errors.append(error)
                else:
                    heard.add(gripper.name)
                    assert (gripper.mode, gripper.force) == (1, 2.5)
            assert heard == {"v1", "v2"}
            for told in (*errors, refused[f"/reads_{v}"]):
                assert (told.topic, told.publisher_node) == ("/gripper", "/says_v3")
                assert told.subscriber_node == f"/reads_{v}"
                assert (told.field_path, told.publisher) == ("force", "float force = 4")
                assert told.subscriber == "double force = 4"
            assert len(errors) == 1
            received = {one.node: (one.received, one.malformed) for one in reader.stats()}
            assert received == {"/says_v1": (1, 0), "/says_v2": (1, 0)}


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_malformed_message_does_not_end_a_reader(play: Play, version: str) -> None:
    kind = rnet.load_proto(HERE / "proto" / version / "robot.proto").Gripper
    environment = dict(play.environment, RNET_DOMAIN=f"broken_{version}")
    reader = Terminal(f"python reader_{version}.py", play.where, environment)
    try:
        domain = environment["RNET_DOMAIN"]
        with rnet.Node("says", dir=environment["RNET_DIR"], domain=domain) as node:
            publisher = node.publisher("/gripper", kind)
            publisher.wait_for_subscribers(1, timeout=LIMIT_S)
            with publisher.loan(1) as memory:
                memory[:] = b"\x0a"
            publisher.send(kind(name="left"))
            assert "/gripper from /says" in str(reader.next_line())
            assert str(reader.next_line()).startswith("left: ")
    finally:
        assert reader.end() == []


def test_the_old_recording_plays_into_nodes_of_the_new_version(play: Play) -> None:
    """`rnet play` needs no code; each reader gets the fields of its version."""
    environment = dict(play.environment, RNET_DOMAIN="played_old")
    with rnet.Node("new", dir=environment["RNET_DIR"], domain="played_old") as node:
        kinds = {v: rnet.load_proto(HERE / "proto" / v / "robot.proto").Gripper for v in ("v1", "v2")}
        readers = {v: node.subscriber("/gripper", kind, reliable=True, keep_all=True) for v, kind in kinds.items()}
        command = [RNET, "play", "old.mcap", "--rate", "max", "--json"]
        done = subprocess.run(
            command, cwd=play.where, env=environment, check=True, timeout=LIMIT_S, capture_output=True, text=True
        )
        played = json.loads(done.stdout)
        assert (played["messages"], played["failed"]) == (20, 0)
        for _ in range(20):
            old, new = (readers[v].recv(timeout=LIMIT_S) for v in ("v1", "v2"))
            assert (old.name, old.width, old.vendor_code) == ("left", 0.08, 17)
            assert (new.name, new.opening, new.force) == ("left", 0.08, 0.5)
            assert not new.HasField("temperature")


def test_other_tools_read_the_recording(play: Play) -> None:
    from mcap.reader import make_reader
    from mcap_protobuf.decoder import DecoderFactory

    with open(play.where / "old.mcap", "rb") as file:
        reader = make_reader(file, decoder_factories=[DecoderFactory()])
        found = list(reader.iter_decoded_messages())
    assert len(found) == 20
    for schema, channel, message, gripper in found:
        assert schema is not None
        assert (schema.name, schema.encoding) == ("robot.Gripper", "protobuf")
        assert (channel.topic, channel.message_encoding) == ("/gripper", "protobuf")
        # A wall-clock time of this run.
        assert message.log_time == message.publish_time > 1_700_000_000 * 10**9
        fields = (gripper.name, gripper.mode, gripper.width, gripper.force, gripper.vendor_code)
        assert fields == ("left", 1, 0.08, 0.5, 17)
    # The recorded type has its comments.
    recorded = found[0][0]
    assert recorded is not None
    files = rnet.types.load_descriptor_set(recorded.data)
    assert "Distance between the fingers. Unit: m" in str(files["robot.Gripper"].__doc__)
    sequences = [message.sequence for _, _, message, _ in found]
    assert sequences == list(range(sequences[0], sequences[0] + 20))
