"""An urgent stop that is never queued behind other topics.

`/load` is a bulk topic with a slow callback and a thousand messages waiting for it; `/stop` is an
urgent topic. The lanes share neither a log nor a thread, so the stop is handled while the bulk
thread still processes its first messages.
"""

import queue
import time

import rnet

LOADS = 1000


def main() -> None:
    robot = rnet.Node("robot")
    handled: list[int] = []

    def work(load: rnet.Sample) -> None:
        time.sleep(0.02)  # Simulates the work of the callback.
        handled.append(int.from_bytes(load, "little"))

    stopped: queue.Queue[rnet.Sample] = queue.Queue()
    loads_read = robot.subscriber("/load", on=work, keep_all=True)
    robot.subscriber("/stop", on=stopped.put)

    operator = rnet.Node("operator")
    loads = operator.publisher("/load")
    stops = operator.publisher("/stop", urgent=True)
    loads.wait_for_subscribers()
    stops.wait_for_subscribers()
    for n in range(LOADS):
        loads.send(n.to_bytes(4, "little"))
    stops.send(b"obstacle")

    stop = stopped.get()
    why, latency_us = bytes(stop).decode(), stop.latency_ns // 1000
    print(f"stop ({why}) after {latency_us} us, {len(handled)} of {LOADS} loads handled")
    loads_read.close()


main()
