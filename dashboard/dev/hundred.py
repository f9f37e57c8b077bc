"""A hundred topics at 1 kHz, for dev/cost.mjs. Prints each second how late the send rounds were, in µs: p50
and p99.
"""

import math
import time

import rnet
from rnet.msgs import Vector3

PERIOD_S = 0.001
node = rnet.Node("hundred")
publishers = [node.publisher(f"/signal/s{n:02}", Vector3) for n in range(100)]
began = time.monotonic()
late = []
n = 0
while True:
    time.sleep(max(0.0, began + n * PERIOD_S - time.monotonic()))
    message = Vector3(x=math.sin(n / 500), y=n % 100, z=n)
    for publisher in publishers:
        publisher.send(message)
    n += 1
    late.append(time.monotonic() - began - (n - 1) * PERIOD_S)
    if len(late) == 1000:
        late.sort()
        print(f"late_us {late[500] * 1e6:.0f} {late[990] * 1e6:.0f} sent {n * len(publishers)}", flush=True)
        late.clear()
