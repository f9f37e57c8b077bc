"""Plays docs/guide/command-line-types.md, and runs the Python of docs/guide/messages.md."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from played_page import ROOT, Play, agrees, blocks, play_in

COMMANDS = ROOT / "docs" / "guide" / "command-line-types.md"
MESSAGES = ROOT / "docs" / "guide" / "messages.md"

#: What the page of commands talks about: versions of a type, and files that need others.
FILES = {
    "old/robot.proto": 'syntax = "proto3";\npackage robot;\nmessage Leg { double force = 1; }\n',
    "new/robot.proto": 'syntax = "proto3";\npackage robot;\nmessage Leg { float force = 1; }\n',
    "robot.proto": 'syntax = "proto3";\npackage robot;\nimport "foot.proto";\nmessage Leg { Foot foot = 1; }\n',
    "protos/leg.proto": 'syntax = "proto3";\npackage robot;\nmessage Leg { double force = 1; }\n',
    "shared/protos/foot.proto": 'syntax = "proto3";\npackage robot;\nmessage Foot { bool contact = 1; }\n',
}


@pytest.fixture(scope="module")
def play() -> Iterator[Play]:
    with play_in() as play:
        for name, text in FILES.items():
            path = play.where / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        yield play


@pytest.fixture(scope="module")
def played(play: Play) -> Play:
    """After the page of commands, which is true."""
    shown = blocks(COMMANDS, "console")
    assert sum(line.startswith("$ ") for _, lines in shown for line in lines) == 12
    for name, lines in shown:
        said = play.block(name, lines)
        assert agrees(lines, said), f"```console {name}\n" + "\n".join(said)
        if name:
            # Observers say so if nobody publishes yet.
            topic = lines[0].split()[4]
            play.block("", [f"$ rnet topic echo {topic} --once"])
    return play


def test_the_page_of_commands_is_true(played: Play) -> None:
    assert sorted(played.terminals) == ["camera", "imu"]


def test_what_the_page_of_commands_lists_works(played: Play) -> None:
    rows = re.findall(r"^\| [^|]+ \| (`rnet .*`) \|$", COMMANDS.read_text(), re.MULTILINE)
    commands = [command for row in rows for command in re.findall("`([^`]+)`", row)]
    assert len(commands) == 9
    for command in commands:
        said = played.block("", [f"$ {command}"])
        assert len(said) > 1 and not said[-1].startswith("exit status"), said
    assert (played.where / "imu.binpb").stat().st_size > 0


def test_what_is_wrong_in_json_is_said_as_on_the_page(played: Play) -> None:
    # The line may end in the middle of it.
    (said,) = re.findall(r"``(field `.*?`.*?)``", " ".join(COMMANDS.read_text().split()))
    command = "$ rnet topic pub /other Twist '{linear: {X: 1}}'"
    assert played.block("", [command])[1].endswith(f": {said}")


def run(snippet: str) -> dict[str, Any]:
    """What the snippet has made."""
    names: dict[str, Any] = {}
    exec(compile(snippet, str(MESSAGES), "exec"), names)
    return names


def test_the_python_of_the_page_of_messages_runs(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    (proto,) = ("\n".join(lines) for _, lines in blocks(MESSAGES, "proto"))
    arm, watcher, planner = ("\n".join(lines) for _, lines in blocks(MESSAGES, "python"))
    home = play.where / "planner"
    (home / "proto").mkdir(parents=True)
    (home / "proto" / "robot.proto").write_text(proto)
    (play.where / "common" / "proto").mkdir(parents=True)
    (play.where / "watcher.py").write_text(watcher)
    play.block("watcher", ["$ python watcher.py"])

    for name in ("RNET_DIR", "RNET_DOMAIN"):
        monkeypatch.setenv(name, play.environment[name])
    monkeypatch.delenv("RNET_GROUP", raising=False)
    with run(arm)["node"]:
        assert play.terminals["watcher"].next_line() == "shoulder 0.1"
    play.terminals.pop("watcher").end()

    monkeypatch.chdir(home)
    names = run(planner)
    with names["node"]:
        robot = names["robot"]
        assert robot.foxglove.Pose is names["Pose"]
        assert robot["my.robot.Plan"] is robot.Plan
