"""Camera frames without copies: written and read in the same shared memory.

`loan` lends a piece of shared memory, the end of the block puts its address into the log, and the
viewer's array is a view of the same bytes. A 900 KiB frame costs as much as a few bytes.
"""

import threading

import numpy as np

import rnet

SHAPE = HEIGHT, WIDTH, CHANNELS = 480, 640, 3
FRAMES = 30


def draw(memory: memoryview, number: int) -> None:
    """A grey picture whose first pixel, top left, is red.

    The array ends with the function. One that outlives the loan would not be wrong, but the frame
    would then be sent as a copy, so that nobody can draw on what is being read.
    """
    frame = np.frombuffer(memory, np.uint8).reshape(SHAPE)
    frame[:] = number
    frame[0, 0] = 255, 0, 0


def view() -> None:
    frames = rnet.Node("viewer").subscriber("/camera/image", reliable=True)
    for _, sample in zip(range(FRAMES), frames):
        frame = np.frombuffer(sample.data, np.uint8).reshape(SHAPE)
        first, last = frame[0, 0].tolist(), frame[-1, -1].tolist()
        print(f"frame {sample.seq}: {frame.nbytes} bytes, from {first} to {last}")
    print(f"lost: {sum(frames.lost.values())}")


def main() -> None:
    camera = rnet.Node("camera")
    # Reliable, because this viewer needs every frame; on a robot, dropping one is usually better.
    frames = camera.publisher("/camera/image", reliable=True, on_full=rnet.Wait(10.0))
    viewer = threading.Thread(target=view)
    viewer.start()
    frames.wait_for_subscribers()
    for number in range(FRAMES):
        with frames.loan(HEIGHT * WIDTH * CHANNELS) as memory:
            draw(memory, number)
    # The publisher owns the frames, so it stays open until they have been read.
    viewer.join()
    print(f"copied: {frames.copied_loan_count}")


main()
