// What the tests of topics share.
#pragma once

#include "domain.hpp"

using check::Domain;
using check::eventually;
using check::in_child;
using check::limit;
using check::thrown;
using rnet::Bytes;
using rnet::Code;

inline rnet::SubscriberOptions keep_all() {
    rnet::SubscriberOptions options;
    options.keep_all = true;
    return options;
}
inline rnet::SubscriberOptions reliable() {
    rnet::SubscriberOptions options;
    options.reliable = true;
    return options;
}
inline rnet::PublisherOptions reliable_publisher() {
    rnet::PublisherOptions options;
    options.reliable = true;
    options.full_timeout = limit;
    return options;
}

struct Force {
    double newton[3];
    std::uint64_t time_ns;
};
RNET_PLAIN(Force, newton, time_ns)
struct LevelV1 {
    double volt;
};
RNET_PLAIN_AS(LevelV1, "Level", volt)
