"""The type stubs are complete, and type checkers accept programs that use the package."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import rnet

ALLOWED = Path(__file__).with_name("stubtest_allowlist.txt")
EXAMPLES = Path(__file__).parents[2] / "examples" / "python"

PROGRAM = '''
import asyncio
import ctypes
from datetime import datetime, timedelta

import numpy as np
import rnet
from rnet import msgs
from rnet.msgs import LaserScan, foxglove


class Point(ctypes.Structure):
    _fields_ = [("x", ctypes.c_double)]


async def serve() -> None:
    async with rnet.Node("typed") as node, node.subscriber("/p", Point) as points:
        async for point in points:
            print(point.x)


async def read(subscriber: rnet.Subscriber[Point]) -> float:
    async for point in subscriber:
        print(point.x)
    return float((await subscriber.recv_async()).x)


def stamp(sample: rnet.Sample) -> int:
    return sample.sent_ns + len(bytes(sample)) + len(sample.data)


with rnet.Node("typed", domain="x") as node:
    points = node.publisher("/p", Point, reliable=True, on_full=rnet.Wait(1.0))
    points.send(Point(1.0))
    with node.publisher("/raw").loan(4) as memory:
        memory[:] = b"1234"
    for point in node.subscriber("/p", Point, wait="spin"):
        print(point.x)
    for sample in node.subscriber("/p", Point).samples():
        stamp(sample)
    node.subscriber("/raw", on=lambda sample: print(stamp(sample)))
    record = rnet.types.named_dtype("R", [("x", "f8")])
    print(node.subscriber("/r", record).recv(timeout=1.0)["x"], node.subscriber("/n", np.float64).latest())
    for text in node.subscriber("/raw", bytes):
        print(text.decode())
    print(node.publisher("/r", record).send_many(np.zeros(3, record)) + 1)
    print(node.subscriber("/r", record).recv_many(max=10, timeout=1.0)["x"].sum())
    rows, sent_ns = node.subscriber("/raw").recv_many(dtype="u4", stamps=True)
    print(rows.sum(), sent_ns[0])
    subscriber, message = rnet.Merge(node.subscriber("/p", Point)).recv()
    asyncio.run(read(node.subscriber("/p", Point)))
    scans = node.publisher("/scan", LaserScan)
    scans.send(LaserScan(timestamp=datetime.now(), ranges=[1.0], pose={"position": {"x": 1.0}}))
    for scan in node.subscriber("/scan", LaserScan):
        scan.timestamp = datetime.now()
        print(scan.timestamp.ToNanoseconds() + len(scan.ranges), scan.pose.position.x + 1.0)
        print(scan.HasField("pose"), scan.SerializeToString().hex(), msgs.Imu().orientation.w)
    command = rnet.msgs.JointCommand(modes=[msgs.JointCommand.MODE_HOLD], valid_for=timedelta(1))
    command.names.append(msgs.JointCommand.Mode.Name(command.modes[0]))
    foxglove.JointStates(joints=[foxglove.JointState(name="elbow")]).joints.add(name="wrist")
    print(node.subscriber("/by/name", "foxglove.LaserScan").recv())
    service = node.service("/mirror", Point, Point, lambda point: Point(-point.x))
    mirror: rnet.Client[Point, Point] = node.client("/mirror", Point, Point)
    print(mirror.call(Point(1.0), timeout=2.0).x, mirror.start(Point(2.0)).result().x, service.stats().calls)
    print(node.call("/upper", b"robot").decode(), node.call("/mirror", Point(1.0), Point).x)
    for reply in mirror.stream(Point(1.0)):
        print(reply.x)
    wheels: rnet.Command[Point] = node.command("/cmd", Point, lambda point: print(point.x), fallback="zero")
    driver: rnet.Driver[Point] = node.drive("/cmd", Point, lease=0.5)
    driver.send(Point(1.0))
    plain: rnet.Publisher = node.publisher("/raw")
    heard: rnet.Subscriber = node.subscriber("/raw")
    plain.send(b"x")
    print(heard.recv(timeout=1.0).seq, wheels.topic.upper())
    robot = rnet.load_proto("robot.proto", include=["protos"])
    for plan in node.subscriber("/plan", robot.Plan):
        print(plan.speed, list(robot), robot["my.Plan"])
try:
    pass
except rnet.IncompatibleTypeError as error:
    print(error.field_path, error.code)
'''

MISTAKES = {
    'node.publisher("/p", Point).send(b"x")': "arg-type",
    'node.subscriber("/p").recv().send()': "attr-defined",
    'node.subscriber("/p", lane="fast")': "call-overload",
    'node.publisher("/p", on_full="wait")': "call-overload",
    "rnet.Sample().seq = 1": "misc",
    'node.subscriber("/p", bytes).recv().seq': "attr-defined",
    'node.subscriber("/p").recv_many(5, 1.0)': "call-overload",
    'node.publisher("/p").send_many([b"x"])': "arg-type",
    'node.publisher("/scan", LaserScan).send(msgs.Imu())': "arg-type",
    'node.subscriber("/scan", LaserScan).recv().angel_min': "attr-defined",
    'LaserScan(frame_id=3)': "arg-type",
    'LaserScan(angel_min=0.1)': "call-arg",
    'LaserScan().pose = msgs.Pose()': "assignment",
    'LaserScan().HasField("ranges")': "arg-type",
    'node.subscriber("/s", msgs.Lidar)': "attr-defined",
    'node.drive("/cmd", Point).send(LaserScan())': "arg-type",
    'node.subscriber("/p").recv(1.0)': "call-arg",
    "rnet.Tick": "attr-defined",
    "rnet.WaitTimeoutError().after_ms": "attr-defined",
    'node.client("/m", Point, Point).call(b"x")': "arg-type",
    'node.client("/m", Point, LaserScan).call(Point(1.0)).angel_min': "attr-defined",
}


def check(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_stubs_agree_with_what_there_is():
    done = check("mypy.stubtest", "rnet", f"--allowlist={ALLOWED}", "--ignore-unused-allowlist")
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_package_itself_is_typed():
    done = check("mypy", "--strict", str(Path(rnet.__file__).parent))
    assert done.returncode == 0, done.stdout


def test_a_program_is_understood(tmp_path):
    good = tmp_path / "good.py"
    good.write_text(PROGRAM)
    done = check("mypy", "--strict", str(good))
    assert done.returncode == 0, done.stdout

    bad = tmp_path / "bad.py"
    head = PROGRAM.split("async def")[0] + 'node = rnet.Node("x")\n'
    bad.write_text(head + "\n".join(MISTAKES) + "\n")
    done = check("mypy", "--strict", str(bad))
    first = head.count("\n") + 1
    for line, code in enumerate(MISTAKES.values(), start=first):
        assert f"bad.py:{line}: error" in done.stdout, done.stdout
        assert f"[{code}]" in done.stdout, done.stdout


@pytest.fixture
def programs(tmp_path):
    """A folder with the examples and PROGRAM, each under a name of its own: several are main.py."""
    for path in EXAMPLES.rglob("*.py"):
        shutil.copy(path, tmp_path / "_".join(path.relative_to(EXAMPLES).parts))
    (tmp_path / "program.py").write_text(PROGRAM)
    return tmp_path


def test_mypy_accepts_the_examples(programs):
    done = check("mypy", "--strict", "--untyped-calls-exclude=mcap", *map(str, programs.glob("*.py")))
    assert done.returncode == 0, done.stdout


def test_pyright_accepts_the_examples(programs):
    pytest.importorskip("pyright")
    # numpy's stubs have members of unknown types.
    config = {"typeCheckingMode": "strict", "reportUnknownMemberType": "none", "pythonVersion": "3.10"}
    config["extraPaths"] = [str(Path(rnet.__file__).parents[1])]
    (programs / "pyrightconfig.json").write_text(json.dumps(config))
    done = check("pyright", "--project", str(programs), "--pythonpath", sys.executable)
    assert done.returncode == 0, done.stdout


def test_the_stubs_of_messages_are_up_to_date():
    path = Path(__file__).parents[1] / "tools" / "message_stubs.py"
    spec = importlib.util.spec_from_file_location("message_stubs", path)
    assert spec is not None and spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    written = tool.stubs()
    assert len(written) == 2
    for stub, text in written.items():
        assert stub.read_text() == text, f"{stub.name} is old: run python/tools/message_stubs.py"


def test_the_tools_are_typed():
    folder = Path(__file__).parents[1]
    files = [str(path) for part in ("tools", "benches") for path in (folder / part).glob("*.py")]
    assert files
    done = check("mypy", "--strict", *files)
    assert done.returncode == 0, done.stdout
