"""Checks the commands in the tables and text of docs/guide/command-line-types.md."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from played_page import ROOT, Play

COMMANDS = ROOT / "docs" / "guide" / "command-line-types.md"


def test_listed_commands_run(played: Callable[[Path], Play]) -> None:
    play = played(COMMANDS)
    rows = re.findall(r"^\| [^|]+ \| (`rnet .*`) \|$", COMMANDS.read_text(), re.MULTILINE)
    commands = [command for row in rows for command in re.findall("`([^`]+)`", row)]
    assert len(commands) == 9
    for command in commands:
        said = play.block("", [f"$ {command}"])
        assert len(said) > 1 and not said[-1].startswith("exit status"), said
    assert (play.where / "imu.binpb").stat().st_size > 0


def test_json_error_matches_the_page(played: Callable[[Path], Play]) -> None:
    # The quoted error may span lines.
    (said,) = re.findall(r"``(field `.*?`.*?)``", " ".join(COMMANDS.read_text().split()))
    command = "$ rnet topic pub /other Twist '{linear: {X: 1}}'"
    assert played(COMMANDS).block("", [command])[1].endswith(f": {said}")
