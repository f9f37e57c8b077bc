"""A laser scanner that sends one scan. Start it and the listener in any order."""

import rnet
from rnet.msgs import LaserScan

scans = rnet.Node("lidar").publisher("/scan", LaserScan)
scans.wait_for_subscribers()
scans.send(LaserScan(frame_id="laser", ranges=[1.5, 1.25, 2.0]))
