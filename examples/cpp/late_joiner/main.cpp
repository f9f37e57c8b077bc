// A map for subscribers that join later.
//
// The map maker publishes three revisions before any node subscribes. transient_local keeps the last one, and
// a planner that joins later receives it at once.
#include <rnet/rnet.hpp>

#include <algorithm>
#include <iostream>
#include <iterator>

constexpr int side = 64;

/// An occupancy grid; the same type as in the Rust and Python examples, which may be the other side.
struct Map {
    std::uint32_t revision;
    /// Side length of a cell, in m.
    float resolution_m;
    /// Row by row: -1 unknown, 0 free, 100 occupied.
    std::int8_t cells[side][side];
};
RNET_PLAIN(Map, revision, resolution_m, cells)

int main() {
    auto maps = rnet::Node("mapper").publisher<Map>("/map", {.transient_local = 1});
    Map map{0, 0.05F, {}};
    for (auto& row : map.cells) std::fill(std::begin(row), std::end(row), -1);
    for (int row = 0; row < 3; ++row) {
        ++map.revision;
        std::fill(std::begin(map.cells[row]), std::end(map.cells[row]), 0);
        maps.send(map);
    }

    auto received = rnet::Node("planner").subscriber<Map>("/map", {.transient_local = true}).recv();
    std::ptrdiff_t free = 0;
    for (const auto& row : received->cells) free += std::count(std::begin(row), std::end(row), 0);
    std::cout << "map revision " << received->revision << ": " << free << " free cells of "
              << received->resolution_m << " m\n";
}
