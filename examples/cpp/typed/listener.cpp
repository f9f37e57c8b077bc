// Prints the ranges of every scan until Ctrl-C.
#include <rnet/msgs/foxglove/LaserScan.hpp>
#include <rnet/rnet.hpp>

#include <cmath>
#include <iostream>

int main() {
    auto scans = rnet::Node("map").subscriber<rnet::msgs::LaserScan>("/scan");
    for (auto& scan : scans) {
        std::cout << scan->frame_id << " [";
        const char* separator = "";
        for (double range : scan->ranges) {
            std::cout << std::exchange(separator, ", ") << range << (range == std::floor(range) ? ".0" : "");
        }
        std::cout << ']' << std::endl;
    }
}
