"""Prints the state of a gripper when it changes. Uses the first version of the type."""

import contextlib

import rnet

robot = rnet.load_proto("proto/v1/robot.proto")
grippers = rnet.Node("reader_v1").subscriber("/gripper", robot.Gripper)
said: dict[int, str] = {}
with contextlib.suppress(KeyboardInterrupt):
    while True:
        try:
            sample = grippers.recv_sample()
            gripper = sample.value
        except rnet.ClosedError:
            break
        except rnet.RnetError as error:
            print(error)  # of one publisher or one message, once; the next call continues
            continue
        known = gripper.mode in robot.Mode.values()
        mode = robot.Mode.Name(gripper.mode) if known else f"mode {gripper.mode}"
        text = f"{mode}, {gripper.width} m, {gripper.force} N, code {gripper.vendor_code}"
        if said.get(sample.publisher) != text:
            said[sample.publisher] = text
            print(f"{gripper.name}: {text}")
