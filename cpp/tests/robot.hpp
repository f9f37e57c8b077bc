// A domain with nodes that publish, for the tests of recordings and inspection.
#pragma once

#include "check.hpp"

#include <rnet/inspect.hpp>
#include <rnet/rnet.hpp>

#include <filesystem>

namespace robot {

/// A plain message.
struct Leg {
    double force;
    std::int32_t turns;
    std::int32_t side;
};
RNET_PLAIN(Leg, force, turns, side)

/// A domain of one test, in its own directory.
struct Domain {
    std::string name = check::domain();
    std::string dir = check::folder(name);

    Domain() { std::filesystem::create_directory(dir); }
    Domain(const Domain&) = delete;
    Domain& operator=(const Domain&) = delete;
    ~Domain() { std::filesystem::remove_all(dir); }

    rnet::Node node(const char* called = "robot") const {
        rnet::NodeOptions options;
        options.domain = name;
        options.dir = dir;
        options.state_dir = dir + "/state";
        return rnet::Node(called, options);
    }
    rnet::DomainOptions options() const {
        rnet::DomainOptions options;
        options.domain = name;
        options.dir = dir;
        return options;
    }
    rnet::Domain open() const { return rnet::Domain::open(options()); }
};

}  // namespace robot
