"""ROS 2 files, exchanged with PyPI's ``rosbags``, and tables of them."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import rnet
from rnet.msgs import BatteryState, Imu, JointState
from rosbags.rosbag2 import Reader, StoragePlugin, Writer
from rosbags.typesys import Stores, get_typestore
from test_record import BUILD, program  # noqa: F401  the program `rnet` of this checkout, for all tests here

STORE = get_typestore(Stores.ROS2_JAZZY)


def run(*arguments: object) -> str:
    done = subprocess.run([BUILD / "rnet", *map(str, arguments)], check=True, timeout=60, capture_output=True)
    return done.stdout.decode()


@pytest.mark.parametrize("at_once", [True, False], ids=["record", "convert"])
def test_rosbags_reads_what_we_write(tmp_path: Path, at_once: bool) -> None:
    path, ros2 = tmp_path / "run.mcap", tmp_path / "ros2.mcap"
    imu = Imu(frame_id="imu", linear_acceleration={"x": 0.1, "y": -9.81}, orientation={"w": 1.0})
    imu.timestamp.FromNanoseconds(1_790_000_000_123_456_789)
    imu.angular_velocity_covariance.extend(float(n) for n in range(9))
    joints = JointState(names=["a", "b"], position=[1.5, 2.5])
    with rnet.Node("/arm") as node:
        sends = [(node.publisher("/imu", Imu), imu), (node.publisher("/joints", JointState), joints)]
        sends.append((node.publisher("/battery", BatteryState), BatteryState(voltage=24.5, charge=7200.0)))
        raw = node.publisher("/raw", None)
        target = ros2 if at_once else path
        command = [BUILD / "rnet", "record", "-o", target, *(["--ros2"] if at_once else [])]
        recorder = subprocess.Popen([*command, "--for", "2"], stderr=subprocess.PIPE, text=True)
        while recorder.poll() is None:
            for publisher, message in sends:
                publisher.send(message)
            raw.send(b"no counterpart")
        said = recorder.stderr.read() if recorder.stderr else ""
    if at_once:
        assert "/raw of /arm is omitted and counted: ROS 2 has no bytes" in said
    else:
        done = subprocess.run(
            [BUILD / "rnet", "bag", "convert", path, "--ros2", "-o", ros2],
            check=True, timeout=60, capture_output=True, text=True,
        )
        assert "messages of /raw were omitted: ROS 2 has no raw" in done.stderr
    read = {}
    with Reader(ros2) as reader:
        for connection, _, data in reader.messages():
            read[connection.topic] = STORE.deserialize_cdr(data, connection.msgtype)
    assert set(read) == {"/imu", "/joints", "/battery"}
    theirs = read["/imu"]
    assert (theirs.header.stamp.sec, theirs.header.stamp.nanosec) == (1_790_000_000, 123_456_789)
    assert theirs.header.frame_id == "imu"
    assert (theirs.linear_acceleration.x, theirs.linear_acceleration.y) == (0.1, -9.81)
    assert theirs.orientation.w == 1.0
    assert (theirs.angular_velocity_covariance == np.arange(9.0)).all()
    assert list(read["/joints"].name) == ["a", "b"] and list(read["/joints"].position) == [1.5, 2.5]
    assert (read["/battery"].voltage, read["/battery"].charge) == (24.5, 2.0)
    assert np.isnan(read["/battery"].current)


def test_we_read_what_rosbags_writes(tmp_path: Path) -> None:
    types = STORE.types
    Header, Time = types["std_msgs/msg/Header"], types["builtin_interfaces/msg/Time"]
    Scan, Twist = types["sensor_msgs/msg/LaserScan"], types["geometry_msgs/msg/Twist"]
    Vector3 = types["geometry_msgs/msg/Vector3"]
    with Writer(tmp_path / "bag", version=9, storage_plugin=StoragePlugin.MCAP) as writer:
        scans = writer.add_connection("/scan", Scan.__msgtype__, typestore=STORE)
        twists = writer.add_connection("/cmd_vel", Twist.__msgtype__, typestore=STORE)
        for n in range(20):
            ranges = np.arange(5, dtype=np.float32) + n
            scan = Scan(Header(Time(n, 7), "laser"), -1.0, 1.0, 0.5, 0.0, 0.1, 0.0, 30.0, ranges, ranges[:0])
            writer.write(scans, n * 1_000_000, STORE.serialize_cdr(scan, Scan.__msgtype__))
            twist = Twist(Vector3(n / 2, 0.0, 0.0), Vector3(0.0, 0.0, -float(n)))
            writer.write(twists, n * 1_000_000, STORE.serialize_cdr(twist, Twist.__msgtype__))
    path = next((tmp_path / "bag").glob("*.mcap"))
    run("bag", "check", path)
    info = run("bag", "info", path)
    assert "Profile:     ros2" in info and "sensor_msgs/msg/LaserScan" in info
    recording = rnet.open_recording(path)
    assert (recording["/cmd_vel"].array("linear.x") == np.arange(20) / 2).all()
    assert (recording["/scan"].array("ranges[4]") == np.arange(20) + 4).all()
    assert (recording["/scan"].array("header.stamp.nanosec") == 7).all()
    scans = list(recording["/scan"])
    assert scans[3].value.header.frame_id == "laser" and list(scans[3].value.ranges) == [3, 4, 5, 6, 7]
    assert scans[3].data[:4] == b"\0\1\0\0"
    assert '"frame_id":"laser"' in run("bag", "cat", path, "--topic", "/scan", "--count", "1", "--json")
    # A part of it, and as a table.
    run("bag", "filter", path, "--topic", "/scan", "-o", tmp_path / "scan.mcap")
    table = tmp_path / "scan.csv"
    run("bag", "convert", tmp_path / "scan.mcap", "-o", table)
    columns = pd.read_csv(table)
    assert list(columns["header.frame_id"]) == ["laser"] * 20
    assert columns["ranges"][3] == "[3.0,4.0,5.0,6.0,7.0]" and columns["intensities"][3] == "[]"
    # It can be played without the ROS 2 types.
    with rnet.Node("/listens") as node:
        heard = node.subscriber("/cmd_vel", keep_all=True)
        run("play", path, "--rate", "max")
        assert len([heard.recv(timeout=10.0) for _ in range(20)]) == 20


def test_pandas_reads_our_tables_and_writes_them_as_parquet(tmp_path: Path) -> None:
    path, table = tmp_path / "run.mcap", tmp_path / "joints.csv"
    with rnet.Node("/arm") as node:
        publisher = node.publisher("/joints", JointState)
        with rnet.record(path, "/joints"):
            for n in range(10):
                message = JointState(names=["a"], position=[n / 2])
                message.timestamp.FromNanoseconds(n)
                publisher.send(message)
    run("bag", "convert", path, "-o", table)
    read = pd.read_csv(table)
    assert [json.loads(cell) for cell in read["position"]] == [[n / 2] for n in range(10)]
    read.to_parquet(tmp_path / "joints.parquet")
    assert pd.read_parquet(tmp_path / "joints.parquet").equals(read)
