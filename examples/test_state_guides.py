"""Plays command-line-state.md, from-redis.md and endpoints.md of docs/guide: commands, and Python as a session (doctest).

The Rust of from-redis.md is that of a program of examples/rust, whose tests run it.
"""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest
from played_page import ROOT, agrees, blocks, play_in

COMMANDS = ROOT / "docs" / "guide" / "command-line-state.md"
REDIS = ROOT / "docs" / "guide" / "from-redis.md"
ENDPOINTS = ROOT / "docs" / "guide" / "endpoints.md"

#: What the page of commands talks about.
FILES = {
    "robot.proto": 'syntax = "proto3";\npackage robot;\nmessage Leg { double force = 1; }\n',
    "firmware.bin": "0123456789abcdef",
}


@pytest.mark.parametrize(("page", "commands"), [(COMMANDS, 31), (REDIS, 21)], ids=["commands", "redis"])
def test_the_commands_print_what_the_page_says(page: Path, commands: int) -> None:
    shown = blocks(page, "console")
    assert sum(line.startswith("$ ") for _, lines in shown for line in lines) == commands
    with play_in() as play:
        for name, text in FILES.items():
            (play.where / name).write_text(text)
        for name, lines in shown:
            said = play.block(name, lines)
            assert agrees(lines, said), f"```console {name}\n" + "\n".join(said)
        assert not play.terminals


@pytest.mark.parametrize(
    ("page", "count", "examples"), [(REDIS, 10, 30), (ENDPOINTS, 2, 24)], ids=["redis", "endpoints"]
)
def test_the_python_of_the_page_says_what_it_says(
    page: Path, count: int, examples: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    sessions = ["\n".join([*lines, ""]) for _, lines in blocks(page, "pycon")]
    assert len(sessions) == count
    # One session: what the page has made before is there later.
    session = doctest.DocTestParser().get_doctest("".join(sessions), {}, page.name, str(page), 0)
    with play_in() as play:
        for name in ("RNET_DIR", "RNET_DOMAIN", "RNET_STATE_DIR"):
            monkeypatch.setenv(name, play.environment[name])
        monkeypatch.delenv("RNET_GROUP", raising=False)
        said: list[str] = []
        runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
        try:
            failed, tried = runner.run(session, out=said.append, clear_globs=False)
        finally:
            if "node" in session.globs:
                session.globs["node"].close()
        assert tried >= examples
        assert failed == 0, "".join(said)
