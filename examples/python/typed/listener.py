"""Prints the ranges of every scan until Ctrl-C."""

import rnet
from rnet.msgs import LaserScan

for scan in rnet.Node("map").subscriber("/scan", LaserScan):
    print(scan.frame_id, list(scan.ranges), flush=True)
