"""The README watches state endlessly."""

import rnet  # noqa: F401

print = until(2, print)  # noqa: A001, F821
