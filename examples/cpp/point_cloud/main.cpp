// A point cloud without copies: the scanner writes points into shared memory, the map reads fields of them
// there.
#include <rnet/msgs/plain.hpp>
#include <rnet/rnet.hpp>

#include <algorithm>
#include <cstddef>
#include <iostream>

namespace plain = rnet::msgs::plain;

/// The points of this scanner. A reader needs only the names of the fields that it reads.
struct Point {
    float x, y, z;
    std::uint16_t ring, reserved;
};

int main() {
    rnet::Node node("lidar");
    auto clouds = node.subscriber<rnet::msgs::PointCloud>("/points");
    auto scanner = node.publisher<rnet::msgs::PointCloud>("/points");
    scanner.wait_for_subscribers();

    constexpr std::uint32_t count = 1000;
    plain::PointCloudHeader header(count, 1, sizeof(Point),
                                   {{"x", offsetof(Point, x), plain::NumberType::f32},
                                    {"y", offsetof(Point, y), plain::NumberType::f32},
                                    {"z", offsetof(Point, z), plain::NumberType::f32},
                                    {"ring", offsetof(Point, ring), plain::NumberType::u16}});
    header.frame_id = "lidar";
    auto cloud = scanner.loan_with(header);
    auto* points = reinterpret_cast<Point*>(cloud.data().data());
    for (std::uint32_t n = 0; n < count; ++n) points[n] = {n * 0.5F, 1, -2, static_cast<std::uint16_t>(n % 16), 0};
    cloud.send();

    const auto sample = clouds.recv();
    const auto x = sample->values<float>("x");
    const auto ring = sample->values<std::uint16_t>("ring");
    float farthest = 0;
    std::size_t in_ring_3 = 0;
    for (std::size_t n = 0; n < x.size(); ++n) {
        farthest = std::max(farthest, x[n]);
        in_ring_3 += ring[n] == 3;
    }
    std::cout << x.size() << " points of " << std::string_view(sample->frame_id) << ", the farthest at " << farthest
              << " m, " << in_ring_3 << " in ring 3\n";
}
