"""Prints the state of a gripper when it changes. Uses the second version of the type."""

import contextlib

import rnet

robot = rnet.load_proto("proto/v2/robot.proto")
grippers = rnet.Node("reader_v2").subscriber("/gripper", robot.Gripper)
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
        text = f"{mode}, {gripper.opening} m, {gripper.force} N"
        if gripper.HasField("temperature"):
            text += f", {gripper.temperature} °C"
        if said.get(sample.publisher) != text:
            said[sample.publisher] = text
            print(f"{gripper.name}: {text}")
