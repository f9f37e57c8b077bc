"""The README watches state endlessly."""

import rnet  # noqa: F401

print = until(3, print)  # noqa: A001, F821
