"""Prints ten messages of the talker, then exits."""

import rnet

for _, heard in zip(range(10), rnet.Node("listener").subscriber("/hello")):
    print(bytes(heard).decode())
