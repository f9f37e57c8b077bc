"""State: current values that any node reads, writes and watches.

An arm publishes its state; a panel reads it, counts jobs, and starts one. When the arm exits for any
reason, its last will updates the state.
"""

import rnet


def main() -> None:
    arm, panel = rnet.Node("arm"), rnet.Node("panel")
    arm.state["/arm/mode"] = "idle"
    arm.state["/arm/gains"] = {"kp": 12.5, "kd": 0.5}
    arm.state.set("/arm/alive", True, last_will=False)

    state = panel.state
    print(f"the arm is {state['/arm/mode']}, kp is {state['/arm/gains']['kp']}")
    jobs = [state.add("/arm/jobs") for _ in range(3)]
    # Both or none: no reader sees a moving arm without a target, and one of two panels wins.
    with state.transaction() as both:
        if both["/arm/mode"] == "idle":
            both["/arm/mode"] = "moving"
            both["/arm/target_m"] = [0.5, -0.25]
    print(f"job {jobs[-1]}: {state['/arm/mode']} to {state['/arm/target_m']}")

    # First the current values, then each change.
    for change in state.watch("/arm/alive"):
        print(f"alive: {change.value}")
        if not change.value:
            break
        arm.close()


main()
