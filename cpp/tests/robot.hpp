// A domain with nodes that publish, for the tests of recordings and inspection.
#pragma once

#include "domain.hpp"

#include <rnet/inspect.hpp>

namespace robot {

/// A plain message.
struct Leg {
    double force;
    std::int32_t turns;
    std::int32_t side;
};
RNET_PLAIN(Leg, force, turns, side)

/// A domain from outside.
inline rnet::DomainOptions options_of(const check::Domain& domain) {
    rnet::DomainOptions options;
    options.domain = domain.name;
    options.dir = domain.dir;
    return options;
}
inline rnet::Domain open(const check::Domain& domain) { return rnet::Domain::open(options_of(domain)); }

}  // namespace robot
