"""A logger that never reads."""

import itertools

import rnet

logger = rnet.Node("logger")
unread = logger.subscriber("/torque", reliable=True)
commands = itertools.repeat(b"1.5")
