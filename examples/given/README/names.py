"""The state of the README is watched for ever."""

import rnet  # noqa: F401

print = until(3, print)  # noqa: A001, F821
