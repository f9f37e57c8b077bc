"""A small robot for the tests of the dashboard: `python robot.py ROLE` runs one of its nodes until it is
killed.
"""

import math
import sys
import threading
import time

import rnet
from rnet.msgs import FrameTransform, Image, Imu, LaserScan, Odometry, PointCloud, Twist, Vector3


def every(period_s):
    """Counts with a fixed period, independent of the tests."""
    tick = threading.Event()
    began = time.monotonic()
    n = 0
    while True:
        yield n, n * period_s
        n += 1
        tick.wait(max(0.0, began + n * period_s - time.monotonic()))


def imu():
    pub = rnet.Node("imu").publisher("/imu", Imu)
    for _n, t in every(0.01):
        acceleration = {"x": math.sin(2 * t), "y": math.cos(3 * t), "z": 9.81}
        pub.send(Imu(frame_id="imu", linear_acceleration=acceleration, angular_velocity={"z": 0.1 * math.sin(t)}))


def lidar():
    import numpy

    node = rnet.Node("lidar")
    scans = node.publisher("/scan", LaserScan)
    clouds = node.publisher("/cloud", PointCloud)
    images = node.publisher("/camera/image", Image)
    frames = node.publisher("/tf", FrameTransform)
    angles = numpy.linspace(0, 6 * math.pi, 4000)
    y, x = numpy.mgrid[0:120, 0:160]
    for n, t in every(0.1):
        ranges = [3 + math.sin(i / 20) + 0.5 * math.sin(i / 5 + t) for i in range(360)]
        scans.send(LaserScan(frame_id="laser", start_angle=-2.3, end_angle=2.3, ranges=ranges))
        xyz = numpy.stack([angles * numpy.cos(angles), angles * numpy.sin(angles), 3 * numpy.sin(angles / 2 + t)], axis=1)
        clouds.send(PointCloud.from_xyz(xyz.astype("f4"), frame_id="lidar"))
        pixels = numpy.stack([x + n, y * 2, x ^ y], axis=2).astype("u1")
        images.send(Image.from_array(pixels, "rgb8", frame_id="camera"))
        turn = {"z": math.sin(t / 4), "w": math.cos(t / 4)}
        frames.send(FrameTransform(parent_frame_id="odom", child_frame_id="base_link", translation={"x": 1}, rotation=turn))
        frames.send(FrameTransform(parent_frame_id="base_link", child_frame_id="lidar", translation={"z": 0.3}, rotation={"w": 1}))


def estimator():
    node = rnet.Node("estimator")
    pub = node.publisher("/odometry", Odometry)
    scans = node.subscriber("/scan", LaserScan)
    threading.Thread(target=lambda: [None for _ in scans], daemon=True).start()
    for n, _imu in enumerate(node.subscriber("/imu", Imu)):
        if n % 2 == 0:
            pub.send(Odometry(frame_id="odom", body_frame_id="base_link"))


def base():
    node = rnet.Node("base")
    node.command("/cmd_vel", Twist, lambda twist: None, deadline=0.2, fallback=Twist())
    node.param("/pid/gain", default=1.0, min=0, max=10, unit="1/s", description="how hard the wheels follow")
    node.param("/gait", default="stand", choices=["stand", "walk"])
    node.service("/mirror", Vector3, Vector3, lambda vector: Vector3(x=-vector.x))
    node.state["/mission/goal"] = "dock 3"
    node.log.warning("the battery is at %.1f V", 22.1)
    threading.Event().wait()


def driver():
    node = rnet.Node("driver")
    odometry, sonar = node.subscriber("/odometry", Odometry), node.subscriber("/sonar", Vector3)
    for topic in (odometry, sonar):
        threading.Thread(target=lambda topic=topic: [None for _ in topic], daemon=True).start()
    driver = None
    for _n, t in every(0.02):
        try:
            driver = driver or node.drive("/cmd_vel", Twist, priority=10, lease=0.4, timeout=0.1)
            driver.send(Twist(linear={"x": 0.2 * math.sin(t)}))
        except rnet.RnetError:
            # The robot was stopped. This driver requests authority again, and gets it after the release.
            driver = None


def sonar():
    """Killed by a test."""
    pub = rnet.Node("sonar").publisher("/sonar", Vector3)
    for _n, t in every(0.05):
        pub.send(Vector3(x=t))


if __name__ == "__main__":
    globals()[sys.argv[1]]()
