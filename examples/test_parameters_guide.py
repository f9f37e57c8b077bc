"""Plays docs/guide/parameters.md, as ``played_page`` says. A block of code with a file's name is that file."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from played_page import ROOT, Play, blocks, play_in

PAGE = ROOT / "docs" / "guide" / "parameters.md"


@pytest.fixture(scope="module")
def play() -> Iterator[Play]:
    with play_in() as play:
        for name, lines in blocks(PAGE, "python"):
            (play.where / name).write_text("\n".join(lines))
        yield play


def masked(lines: list[str]) -> list[str]:
    """Without what differs from run to run: the process in a node's name."""
    return [re.sub(r"(?<=/rnet_param_)\d+", "…", line).rstrip() for line in lines]


def test_the_page_is_true(play: Play) -> None:
    shown = blocks(PAGE, "console")
    assert len(shown) == 13
    for name, lines in shown:
        assert masked(play.block(name, lines)) == lines, f"```console {name}"
    assert not play.terminals, "the page leaves programs running"
