"""Prints what the talker says: ten messages, then it ends."""

import rnet

for _, heard in zip(range(10), rnet.Node("listener").subscribe("/hello")):
    print(bytes(heard).decode())
