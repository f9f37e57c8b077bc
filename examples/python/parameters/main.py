"""A setting that an operator changes while the robot moves.

The arm declares its gain. Setting it to a value that is not allowed raises an error and changes
nothing. In a terminal, `rnet param set /arm gain 2.5` does the same as the operator here.
"""

import queue

import rnet


def main() -> None:
    changes: queue.Queue[float] = queue.Queue()
    arm = rnet.Node("arm")
    gain = arm.param(
        "/gain",
        default=1.0,
        min=0,
        max=10,
        unit="1/s",
        description="how hard the arm pulls towards its target",
        on_change=changes.put,
    )
    print(f"gain is {gain.get()}")

    operator = rnet.Node("operator")
    try:
        operator.state["/params/arm/gain"] = 11.0
    except rnet.errors.BadValueError as error:
        print(f"refused: {error}")
    operator.state["/params/arm/gain"] = 2.5

    print(f"gain is {changes.get()} now")
    # As in each iteration of a control loop.
    assert gain.get() == 2.5


main()
