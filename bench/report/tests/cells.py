"""The numbers that a cell of a table shows."""

import re

TOLERANCE = 0.00501  # three significant digits


def numbers(text):
    """The numbers in a cell: [] for "–"."""
    plain = text.replace("*", "").replace(",", "")
    if plain in ("–", ""):
        return []
    return [float(n) for n in re.split(r"[ \[\]–]+", plain) if n]


def same(shown, expected):
    """Whether the cell shows these values, to three digits (counts exactly)."""
    if len(shown) != len(expected):
        return False
    exact = all(isinstance(e, int) for e in expected)
    near = lambda a, b: a == b if exact else abs(a - b) <= TOLERANCE * abs(b)
    return all(near(a, b) for a, b in zip(shown, expected))
