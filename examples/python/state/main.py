"""What is to be known for longer than a message: state, which any node reads, writes and watches.

An arm says how it is; a panel reads that, counts jobs, and starts one. When the arm ends, however it
ends, its last will tells everybody.
"""

import rnet


def main() -> None:
    arm, panel = rnet.Node("arm"), rnet.Node("panel")
    arm.state["/arm/mode"] = "idle"
    arm.state["/arm/gains"] = {"kp": 12.5, "kd": 0.5}
    arm.state.set("/arm/alive", True, last_will=False)

    state = panel.state
    print(f"the arm is {state['/arm/mode']}, kp is {state['/arm/gains']['kp']}")
    for _ in range(3):
        job = state.add("/arm/jobs")
    # Both or none: nobody sees an arm that moves without a target, and of two panels one wins.
    with state.transaction() as both:
        if both["/arm/mode"] == "idle":
            both["/arm/mode"] = "moving"
            both["/arm/target_m"] = [0.5, -0.25]
    print(f"job {job}: {state['/arm/mode']} to {state['/arm/target_m']}")

    # First what stands there, then each change.
    for change in state.watch("/arm/alive"):
        print(f"alive: {change.value}")
        if not change.value:
            break
        arm.close()


main()
