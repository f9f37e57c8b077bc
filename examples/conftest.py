"""Shared by the tests of pages: each page is run once."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from played_page import GIVEN, ROOT, Play, play_commands, play_in

#: Pages about the files of an example.
EXAMPLES = {"change-a-message": ROOT / "examples" / "python" / "change_a_message"}


@pytest.fixture(scope="session")
def played() -> Iterator[Callable[[Path], Play]]:
    """Runs the commands of a page and returns the player in its final state."""
    with contextlib.ExitStack() as stack:

        @functools.cache
        def play_once(page: Path) -> Play:
            given = EXAMPLES.get(page.stem, GIVEN / page.stem)
            play = stack.enter_context(play_in(given if given.exists() else None))
            if page.stem == "security":
                # The default of root is a file of the system.
                play.environment |= {"RNET_KEYS": str(play.where / "host" / "keys.pem"), "RNET_HOST": "robot"}
            play_commands(page, play)
            return play

        yield play_once
