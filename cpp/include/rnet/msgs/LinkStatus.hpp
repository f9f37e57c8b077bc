// Written from rnet/msgs/LinkStatus.proto by `cargo xtask cpp-messages --write`; do not edit.
#pragma once

#include <rnet/detail/wire.hpp>
#include <rnet/msgs/time.hpp>

namespace rnet::msgs { inline namespace structs {

/// State of the link with another host.
enum class LinkStatus_State : std::int32_t {
    /// Not said.
    unspecified = 0,
    /// Its address is known, but nothing has arrived from it.
    connecting = 1,
    /// Both receive from each other.
    connected = 2,
    /// It was connected, but nothing arrives any more.
    lost = 3,
    /// It violated the protocol; the text has the details.
    refused = 4,
};

/// Which way messages cross, as this host sees it.
enum class LinkStatus_Direction : std::int32_t {
    /// Not said.
    unspecified = 0,
    /// From another host to this one.
    in = 1,
    /// From this host to another one.
    out = 2,
};

/// Why messages wait or are left out.
enum class LinkStatus_Cause : std::int32_t {
    /// Nothing is held back.
    unspecified = 0,
    /// The receiver is full: its subscribers are behind.
    credit = 1,
    /// The network is saturated.
    window = 2,
    /// A rule of the configuration forbids them.
    rule = 3,
    /// The configuration limits their rate.
    rate_limit = 4,
    /// The configuration lets only the newest message, or one of several, cross.
    left_out = 5,
    /// No subscriber there.
    no_subscriber = 6,
    /// The certificate of a host does not allow them.
    rights = 7,
};

/// The certificate of a host.
struct LinkStatus_Certificate {
    /// Its serial number, in hexadecimal digits.
    std::string serial{};
    /// When it expires, UTC.
    std::optional<Timestamp> expires{};
};

/// A step of a peer's clock against this host's.
struct LinkStatus_ClockStep {
    /// When it was noticed, UTC.
    std::optional<Timestamp> timestamp{};
    /// By how much the offset changed.
    std::optional<Duration> step{};
};

/// What was lost on the way, in messages.
struct LinkStatus_Lost {
    /// The link or a connection failed first, and the log no longer has them. Unit: 1
    std::uint64_t link = 0;
    /// The sender overwrote them before the link had read them. Unit: 1
    std::uint64_t overrun = 0;
    /// Their publisher restarted. Unit: 1
    std::uint64_t restart = 0;
    /// The publisher detached the link because it made no progress for too long. Unit: 1
    std::uint64_t detached = 0;
};

/// Traffic of a topic, of all publishers together.
struct LinkStatus_Topic {
    /// The topic.
    std::string name{};
    /// Which way.
    LinkStatus_Direction direction{};
    /// Messages in the last second. Unit: Hz
    double rate_hz = 0;
    /// Payload in the last second. Unit: B/s
    double bytes_per_s = 0;
    /// Messages since the link started, even if the host was lost in between. Unit: 1
    std::uint64_t messages = 0;
    /// Messages lost since the link started.
    std::optional<LinkStatus_Lost> lost{};
    /// Messages that the configuration left out (rate limit, newest only, every) since the link started.
    /// Unit: 1
    std::uint64_t skipped = 0;
    /// Why messages wait or no longer cross.
    LinkStatus_Cause held_back{};
    /// The same as text, for example the rule and its line; empty if nothing is held back.
    std::string held_back_text{};
    /// Age of the message that waits for the network or the receiver; not set if none waits.
    std::optional<Duration> waited{};
};

/// Another host.
struct LinkStatus_Peer {
    /// Its name; empty if not known yet.
    std::string host{};
    /// Its number, 16 hexadecimal digits, new with each boot; empty as long as it is not known.
    std::string id{};
    /// Its release of robot-net; empty as long as it is not known.
    std::string version{};
    /// Its address, as `tcp/10.0.0.2:7450`, without the port if it has named none; empty if it is not known.
    std::string address{};
    /// How the link with it is.
    LinkStatus_State state{};
    /// Since when, UTC.
    std::optional<Timestamp> since{};
    /// Details as text; empty if all is well.
    std::string text{};
    /// Time there and back.
    std::optional<Duration> round_trip{};
    /// Offset of its monotonic clock from this host's.
    std::optional<Duration> clock_offset{};
    /// Uncertainty of the offset, in both directions.
    std::optional<Duration> clock_offset_uncertainty{};
    /// The last steps of its clock, oldest first.
    std::vector<LinkStatus_ClockStep> clock_steps{};
    /// What crosses to and from it.
    std::vector<LinkStatus_Topic> topics{};
    /// Nodes that it has. Unit: 1
    std::uint32_t nodes = 0;
    /// Drift of its clock relative to this host's, positive if it is faster; 0 if not known yet. Unit: 1
    double clock_drift = 0;
    /// Uncertainty of the drift, in both directions; 0 if not known yet. Unit: 1
    double clock_drift_uncertainty = 0;
    /// Its certificate; not set if keys do not secure the link.
    std::optional<LinkStatus_Certificate> certificate{};
    /// Endpoints of it that its certificate did not allow, since the link started. Unit: 1
    std::uint64_t refused_endpoints = 0;
};

/// Status of a host's link to other hosts. Sent on each change and once a second.
struct LinkStatus {
    using State = LinkStatus_State;
    using Direction = LinkStatus_Direction;
    using Cause = LinkStatus_Cause;
    using Certificate = LinkStatus_Certificate;
    using ClockStep = LinkStatus_ClockStep;
    using Lost = LinkStatus_Lost;
    using Topic = LinkStatus_Topic;
    using Peer = LinkStatus_Peer;

    /// When it was so, UTC.
    std::optional<Timestamp> timestamp{};
    /// The name of this host.
    std::string host{};
    /// Its number, 16 hexadecimal digits, new with each boot.
    std::string id{};
    /// Term of the link: each successor has a higher one. Unit: 1
    std::uint64_t term = 0;
    /// The process of the link. Unit: 1
    std::uint32_t pid = 0;
    /// Its release of robot-net.
    std::string version{};
    /// How hosts find each other: `lan` or `peers`.
    std::string mode{};
    /// Where it can be reached, as `tcp/0.0.0.0:7450`.
    std::vector<std::string> listen{};
    /// The other hosts, connected or not.
    std::vector<Peer> peers{};
    /// Problems as text, one line each.
    std::vector<std::string> problems{};
    /// Endpoints that it connects to, such as `tcp/10.0.0.2:7450`; empty from a link of an earlier release.
    std::vector<std::string> connect{};
    /// Network interfaces of mode `lan`; empty for all but the loopback, and from a link of an earlier
    /// release.
    std::vector<std::string> interfaces{};
    /// Whether it reaches beyond this host without encryption or authentication: anyone who reaches its ports
    /// can take part.
    bool insecure = false;
    /// The certificate of this host; not set if keys do not secure the link.
    std::optional<Certificate> certificate{};
    /// The certificate authority of its keys, as the first 16 hexadecimal digits of its SHA-256 digest; empty
    /// if keys do not secure the link.
    std::string authority{};
};

}}  // namespace rnet::msgs

namespace rnet::detail {

template <>
struct Fields<msgs::LinkStatus_Certificate> {
    static constexpr const char* name = "rnet.msgs.LinkStatus.Certificate";
    template <class V>
    static void visit(V&& visit) {
        using M = msgs::LinkStatus_Certificate;
        visit(Field<2>(), &M::expires);
        visit(Field<1>(), &M::serial);
    }
};

template <>
struct Fields<msgs::LinkStatus_ClockStep> {
    static constexpr const char* name = "rnet.msgs.LinkStatus.ClockStep";
    template <class V>
    static void visit(V&& visit) {
        using M = msgs::LinkStatus_ClockStep;
        visit(Field<2>(), &M::step);
        visit(Field<1>(), &M::timestamp);
    }
};

template <>
struct Fields<msgs::LinkStatus_Lost> {
    static constexpr const char* name = "rnet.msgs.LinkStatus.Lost";
    template <class V>
    static void visit(V&& visit) {
        using M = msgs::LinkStatus_Lost;
        visit(Field<4>(), &M::detached);
        visit(Field<3>(), &M::restart);
        visit(Field<2>(), &M::overrun);
        visit(Field<1>(), &M::link);
    }
};

template <>
struct Fields<msgs::LinkStatus_Topic> {
    static constexpr const char* name = "rnet.msgs.LinkStatus.Topic";
    template <class V>
    static void visit(V&& visit) {
        using M = msgs::LinkStatus_Topic;
        visit(Field<10>(), &M::waited);
        visit(Field<9>(), &M::held_back_text);
        visit(Field<8>(), &M::held_back);
        visit(Field<7>(), &M::skipped);
        visit(Field<6>(), &M::lost);
        visit(Field<5>(), &M::messages);
        visit(Field<4>(), &M::bytes_per_s);
        visit(Field<3>(), &M::rate_hz);
        visit(Field<2>(), &M::direction);
        visit(Field<1>(), &M::name);
    }
};

template <>
struct Fields<msgs::LinkStatus_Peer> {
    static constexpr const char* name = "rnet.msgs.LinkStatus.Peer";
    template <class V>
    static void visit(V&& visit) {
        using M = msgs::LinkStatus_Peer;
        visit(Field<17>(), &M::refused_endpoints);
        visit(Field<16>(), &M::certificate);
        visit(Field<15>(), &M::clock_drift_uncertainty);
        visit(Field<14>(), &M::clock_drift);
        visit(Field<13>(), &M::nodes);
        visit(Field<12>(), &M::topics);
        visit(Field<11>(), &M::clock_steps);
        visit(Field<10>(), &M::clock_offset_uncertainty);
        visit(Field<9>(), &M::clock_offset);
        visit(Field<8>(), &M::round_trip);
        visit(Field<7>(), &M::text);
        visit(Field<6>(), &M::since);
        visit(Field<5>(), &M::state);
        visit(Field<4>(), &M::address);
        visit(Field<3>(), &M::version);
        visit(Field<2>(), &M::id);
        visit(Field<1>(), &M::host);
    }
};

template <>
struct Fields<msgs::LinkStatus> {
    static constexpr const char* name = "rnet.msgs.LinkStatus";
    template <class V>
    static void visit(V&& visit) {
        using M = msgs::LinkStatus;
        visit(Field<16>(), &M::authority);
        visit(Field<15>(), &M::certificate);
        visit(Field<14>(), &M::insecure);
        visit(Field<13>(), &M::interfaces);
        visit(Field<12>(), &M::connect);
        visit(Field<11>(), &M::problems);
        visit(Field<10>(), &M::peers);
        visit(Field<9>(), &M::listen);
        visit(Field<8>(), &M::mode);
        visit(Field<7>(), &M::version);
        visit(Field<6>(), &M::pid);
        visit(Field<5>(), &M::term);
        visit(Field<4>(), &M::id);
        visit(Field<3>(), &M::host);
        visit(Field<1>(), &M::timestamp);
    }
};

}  // namespace rnet::detail
