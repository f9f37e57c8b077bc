"""A client that calls three times."""

import rnet

client = rnet.Node("client")
asking = client.publisher("/requests")
timer = client.timer(0.02, lambda tick: asking.send(b"how far?", correlation=tick.number))
answer = until(3, lambda request: b"2 m")
