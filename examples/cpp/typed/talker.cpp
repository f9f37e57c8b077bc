// A laser scanner that sends one scan. Start it and the listener in any order.
#include <rnet/msgs/foxglove/LaserScan.hpp>
#include <rnet/rnet.hpp>

int main() {
    auto scans = rnet::Node("lidar").publisher<rnet::msgs::LaserScan>("/scan");
    scans.wait_for_subscribers();
    rnet::msgs::LaserScan scan;
    scan.frame_id = "laser";
    scan.ranges = {1.5, 1.25, 2.0};
    scans.send(scan);
}
