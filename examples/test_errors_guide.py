"""Holds docs/guide/errors.md to the exceptions that there are, and runs its Python."""

from __future__ import annotations

import re
import tempfile

import pytest
import rnet
from played_page import ROOT, blocks

PAGE = ROOT / "docs" / "guide" / "errors.md"


def test_the_page_has_every_error_with_what_it_is_in_python() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (.*?) \| (.*?) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    shown = {code: (re.search(r"`(\w+)`", names), re.findall(r"`(\w+)`", bases)) for code, names, bases in rows}
    assert len(shown) == len(rows)
    classes = {c.code: c for c in vars(rnet).values() if isinstance(c, type) and issubclass(c, rnet.RnetError)}
    del classes[rnet.RnetError.code]
    assert shown.keys() == classes.keys()
    for code, (name, bases) in shown.items():
        own = [base.__name__ for base in classes[code].__bases__ if base.__module__ == "builtins"]
        assert name and (name[1], bases) == (classes[code].__name__, own)


def test_its_python_runs(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    with tempfile.TemporaryDirectory(prefix="rnet-errors-", dir="/dev/shm") as base:
        monkeypatch.setenv("RNET_DIR", base)
        run_its_python()
    assert capsys.readouterr().out == (
        "/logger is behind on /torque\n"
        "timeout /torque None timed out after 10 ms: a message on /torque; wait longer, or ask `rnet doctor` what is missing\n"
    )


def run_its_python() -> None:
    ((_, lines),) = blocks(PAGE, "python")
    code = "\n".join(lines).replace("torque.send", "listen(torque).send")

    def listen(torque: rnet.Publisher) -> rnet.Publisher:
        # A reader that never reads: the log is full after a while.
        node = rnet.Node("logger")
        subscriber = node.subscribe("/torque", reliable=True)
        torque.wait_for_subscribers(1)
        keep.extend([node, subscriber])
        with pytest.raises(rnet.Full):
            while True:
                torque.send(b"1.5")
        return torque

    keep: list[object] = []
    names = {"listen": listen}
    exec(compile(code, str(PAGE), "exec"), names)
    for node in (keep[0], names["node"]):
        assert isinstance(node, rnet.Node)
        node.close()
