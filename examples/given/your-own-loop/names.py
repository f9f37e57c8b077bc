"""A controller, and functions that a loop calls."""

import asyncio

import rnet

compute = lambda: b"1.5"  # noqa: E731
step = until(3, lambda *_: None)
halt = switch = print
speaker = rnet.Node("speaker")
subscriber = rnet.Node("listener").subscriber("/speech")
speech = speaker.publisher("/speech")
speech.wait_for_subscribers()
speech.send(b"hello")
loop = asyncio.new_event_loop()


def handle(message: rnet.Sample) -> None:
    assert bytes(message) == b"hello"
    loop.stop()
