"""Compares docs/guide/errors.md with the exception classes."""

from __future__ import annotations

import re

import rnet
from played_page import ROOT

PAGE = ROOT / "docs" / "guide" / "errors.md"


def test_the_page_has_each_error_with_its_python_bases() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (.*?) \| (.*?) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    shown = {code: (re.search(r"`(\w+)`", names), re.findall(r"`(\w+)`", bases)) for code, names, bases in rows}
    assert len(shown) == len(rows)
    classes = {c.code: c for c in vars(rnet.errors).values() if isinstance(c, type) and issubclass(c, rnet.RnetError)}
    del classes[rnet.RnetError.code]
    assert shown.keys() == classes.keys()
    for code, (name, bases) in shown.items():
        own = [base.__name__ for base in classes[code].__bases__ if base.__module__ == "builtins"]
        assert name and (name[1], bases) == (classes[code].__name__, own)
