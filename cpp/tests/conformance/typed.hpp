// Typed messages of an actor, and its steps on them: see typed.rs.
#pragma once

#include "common.hpp"

#include <rnet/msgs/Twist.hpp>
#include <rnet/msgs/foxglove/LaserScan.hpp>
#include <rnet/rnet.hpp>
#include <rnet/service.hpp>

#include <memory>
#include <numeric>
#include <optional>
#include <sstream>

struct Vector {
    float x, y;
};
RNET_PLAIN_AS(Vector, "conformance.Vector", x, y)

struct Leg {
    double force[3];
    std::uint64_t time_ns;
    Vector at[2];
    std::int32_t turns;
    std::uint32_t side;
};
RNET_PLAIN_AS(Leg, "conformance.Leg", force, time_ns, at, turns, side)

struct LegGrown {
    double force[3];
    std::uint64_t time_ns;
    Vector at[2];
    std::int32_t turns;
    std::uint32_t side;
    double current;
};
RNET_PLAIN_AS(LegGrown, "conformance.Leg", force, time_ns, at, turns, side, current)

struct LegRetyped {
    double force[3];
    std::uint64_t time_ns;
    Vector at[2];
    std::uint32_t turns;
    std::uint32_t side;
};
RNET_PLAIN_AS(LegRetyped, "conformance.Leg", force, time_ns, at, turns, side)

namespace numbered {

using rnet::msgs::Twist;
using rnet::msgs::foxglove::LaserScan;

template <class L>
void fill(L& leg, int number) {
    for (int at = 0; at < 3; ++at) leg.force[at] = (at == 1 ? -2 : at + 1) * number;
    leg.time_ns = (std::uint64_t{1} << 60) + static_cast<std::uint64_t>(number);
    for (int at = 0; at < 2; ++at) {
        leg.at[at].x = static_cast<float>(number + 2 * at);
        leg.at[at].y = static_cast<float>(number + 2 * at + 1);
    }
    leg.turns = 1000 * number;
    leg.side = 0xffffffffu - static_cast<std::uint32_t>(number);
    if constexpr (std::is_same_v<L, LegGrown>) leg.current = 10.0 * number;
}
inline void fill(Twist& twist, int number) {
    const double n = number;
    using rnet::msgs::foxglove::Vector3;
    twist.linear = Vector3{n, -n, 0};
    if (number % 2 == 1) twist.angular = Vector3{0, 0, n};
}
inline void fill(LaserScan& scan, int number) {
    scan.timestamp = rnet::msgs::Timestamp(number, 7);
    scan.frame_id = "laser " + std::to_string(number);
    scan.ranges.resize(1080);
    std::iota(scan.ranges.begin(), scan.ranges.end(), number);
}

template <class L>
void print(std::ostream& out, const L& leg) {
    for (double force : leg.force) out << force << ' ';
    out << leg.time_ns << ' ';
    for (Vector at : leg.at) out << at.x << ' ' << at.y << ' ';
    out << leg.turns << ' ' << leg.side;
    if constexpr (std::is_same_v<L, LegGrown>) out << ' ' << leg.current;
}
template <class V>
void print_vector(std::ostream& out, const std::optional<V>& vector) {
    if (!vector) {
        out << "none";
    } else {
        out << vector->x << ' ' << vector->y << ' ' << vector->z;
    }
}
inline void print(std::ostream& out, const Twist& twist) {
    print_vector(out, twist.linear);
    out << ' ';
    print_vector(out, twist.angular);
}
inline void print(std::ostream& out, const LaserScan& scan) {
    const double sum = std::accumulate(scan.ranges.begin(), scan.ranges.end(), 0.0);
    out << scan.frame_id << ' ' << scan.timestamp->seconds << ' ' << scan.timestamp->nanos << ' '
        << scan.ranges.size() << ' ' << sum;
}

template <class T>
T of(int number) {
    T message{};
    fill(message, number);
    return message;
}
template <class T>
std::string words(const T& message) {
    std::ostringstream out;
    out.precision(17);
    print(out, message);
    return out.str();
}

}  // namespace numbered

/// The steps on endpoints of one type.
class TypedEndpoints {
public:
    virtual ~TypedEndpoints() = default;
    virtual json act(const rnet::Node& node, const std::string& kind, const json& given) = 0;
};

template <class T>
class EndpointsOf : public TypedEndpoints {
public:
    json act(const rnet::Node& node, const std::string& kind, const json& given) override {
        if (kind == "Publish") {
            publisher_.emplace(node.publisher<T>(text(given, "topic")));
        } else if (kind == "Subscribe") {
            subscriber_.emplace(node.subscriber<T>(text(given, "topic")));
        } else if (kind == "WaitSubscribers") {
            publisher_->wait_for_subscribers_for(1, LONG);
        } else if (kind == "WaitPublishers") {
            subscriber_->wait_for_publishers_for(1, LONG);
        } else if (kind == "Send") {
            publisher_->send(numbered::of<T>(given.at("number")));
        } else if (kind == "Receive") {
            return said({numbered::words(*subscriber_->recv_for(LONG))});
        } else if (kind == "Echo") {
            service_.emplace(rnet::serve<T, T>(node, text(given, "name"), [](const T& request) { return request; }));
        } else if (kind == "Call") {
            rnet::ClientOptions options;
            options.timeout = LONG;
            const T request = numbered::of<T>(given.at("number"));
            return said({numbered::words(*rnet::call<T, T>(node, text(given, "name"), request, options))});
        } else {
            give_up("unknown step of typed messages " + kind);
        }
        return said();
    }

private:
    std::optional<rnet::Publisher<T>> publisher_;
    std::optional<rnet::Subscriber<T>> subscriber_;
    std::optional<rnet::Service> service_;
};

class Typed {
public:
    explicit Typed(rnet::Node& node) : node_(node) {}

    json act(const json& step) {
        const auto [kind, given] = variant(step);
        const bool sends = kind == "Publish" || kind == "Send" || kind == "WaitSubscribers";
        auto& endpoints = sends ? sender_ : receiver_;
        if (given.is_object() && given.contains("form")) endpoints = of_form(text(given, "form"));
        return endpoints->act(node_, kind, given);
    }

private:
    static std::unique_ptr<TypedEndpoints> of_form(const std::string& form) {
        if (form == "Leg") return std::make_unique<EndpointsOf<Leg>>();
        if (form == "LegGrown") return std::make_unique<EndpointsOf<LegGrown>>();
        if (form == "LegRetyped") return std::make_unique<EndpointsOf<LegRetyped>>();
        if (form == "Twist") return std::make_unique<EndpointsOf<rnet::msgs::Twist>>();
        return std::make_unique<EndpointsOf<rnet::msgs::foxglove::LaserScan>>();
    }

    rnet::Node& node_;
    std::unique_ptr<TypedEndpoints> sender_, receiver_;
};
