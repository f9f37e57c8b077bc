"""Publishes ten greetings. Start it and the listener in any order."""

import rnet

hello = rnet.Node("talker").publisher("/hello")
hello.wait_for_subscribers()
for n in range(10):
    hello.send(f"hello, robot {n}".encode())
