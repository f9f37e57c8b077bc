// What endpoints have counted, and their peers.
#pragma once

#include <rnet/error.hpp>
#include <rnet/hooks.hpp>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace rnet {

/// A publisher or subscriber.
struct Peer {
    std::uint64_t id = 0;
    std::string node;
};

/// Messages that a subscriber has not taken yet.
struct Backlog {
    std::uint64_t messages = 0;
    /// The age of the oldest.
    std::chrono::nanoseconds age{0};
};

/// What a subscriber has counted for one publisher.
struct PublisherStats {
    /// 0 in the entry that sums the oldest former publishers.
    std::uint64_t publisher = 0;
    std::string node;
    bool connected = false;
    std::uint64_t received = 0;
    std::uint64_t lost_overrun = 0, lost_link = 0, lost_restart = 0, lost_detached = 0;
    std::uint64_t skipped = 0, expired = 0, deadline_missed = 0, malformed = 0;
    Backlog behind;

    std::uint64_t lost() const noexcept { return lost_overrun + lost_link + lost_restart + lost_detached; }
};

namespace detail {

inline auto stats_of(rnet_subscriber*) { return rnet_subscriber_stats; }
inline auto stats_of(rnet_subscription*) { return rnet_subscription_stats; }
inline auto behind_of(rnet_subscriber*) { return rnet_subscriber_behind; }
inline auto behind_of(rnet_subscription*) { return rnet_subscription_behind; }
inline auto liveliness_of(rnet_subscriber*) { return rnet_subscriber_liveliness; }
inline auto liveliness_of(rnet_subscription*) { return rnet_subscription_liveliness; }

inline std::vector<PublisherStats> stats_from(rnet_stats_list* given) {
    Handle<rnet_stats_list, rnet_stats_list_free> list(given);
    std::vector<PublisherStats> all;
    for (std::size_t at = 0; at < rnet_stats_list_count(given); ++at) {
        rnet_publisher_stats one{};
        one.struct_size = sizeof one;
        if (rnet_stats_list_get(given, at, &one, nullptr) != RNET_OK) break;
        PublisherStats stats;
        stats.publisher = one.publisher;
        stats.node = one.node;
        stats.connected = one.connected;
        stats.received = one.received;
        stats.lost_overrun = one.lost_overrun;
        stats.lost_link = one.lost_link;
        stats.lost_restart = one.lost_restart;
        stats.lost_detached = one.lost_detached;
        stats.skipped = one.skipped;
        stats.expired = one.expired;
        stats.deadline_missed = one.deadline_missed;
        stats.malformed = one.malformed;
        stats.behind = {one.behind, std::chrono::nanoseconds(one.behind_age_ns)};
        all.push_back(std::move(stats));
    }
    return all;
}

inline std::vector<Peer> peers_from(rnet_peer_list* given) {
    Handle<rnet_peer_list, rnet_peer_list_free> list(given);
    std::vector<Peer> all;
    for (std::size_t at = 0; at < rnet_peer_list_count(given); ++at) {
        all.push_back({rnet_peer_list_id(given, at), rnet_peer_list_node(given, at)});
    }
    return all;
}

inline std::vector<std::string> names_from(rnet_name_list* given) {
    Handle<rnet_name_list, rnet_name_list_free> list(given);
    std::vector<std::string> all;
    for (std::size_t at = 0; at < rnet_name_list_count(given); ++at) {
        all.push_back(rnet_name_list_get(given, at));
    }
    return all;
}

}  // namespace detail

/// Received and lost messages of a subscriber or subscription, by publisher, including former ones.
template <class S>
Result<std::vector<PublisherStats>> stats(const S& subscriber, std::nothrow_t) {
    rnet_stats_list* list = nullptr;
    rnet_error* error = nullptr;
    rnet_code code = detail::stats_of(subscriber.handle())(subscriber.handle(), &list, &error);
    if (code != RNET_OK) return Error(static_cast<Code>(code), error);
    return detail::stats_from(list);
}
template <class S>
std::vector<PublisherStats> stats(const S& subscriber) {
    return stats(subscriber, std::nothrow).value();
}

/// The backlog of a subscriber or subscription from all publishers together.
template <class S>
Result<Backlog> behind(const S& subscriber, std::nothrow_t) {
    std::uint64_t messages = 0, age_ns = 0;
    rnet_error* error = nullptr;
    rnet_code code = detail::behind_of(subscriber.handle())(subscriber.handle(), &messages, &age_ns, &error);
    if (code != RNET_OK) return Error(static_cast<Code>(code), error);
    return Backlog{messages, std::chrono::nanoseconds(age_ns)};
}
template <class S>
Backlog behind(const S& subscriber) {
    return behind(subscriber, std::nothrow).value();
}

/// Number of publishers of a subscriber or subscription that are alive or not.
template <class S>
Result<Liveliness> liveliness(const S& subscriber, std::nothrow_t) {
    Liveliness counts;
    rnet_error* error = nullptr;
    auto get = detail::liveliness_of(subscriber.handle());
    rnet_code code = get(subscriber.handle(), &counts.alive, &counts.not_alive, &error);
    if (code != RNET_OK) return Error(static_cast<Code>(code), error);
    return counts;
}
template <class S>
Liveliness liveliness(const S& subscriber) {
    return liveliness(subscriber, std::nothrow).value();
}

/// The publishers that are matched with a subscriber now.
template <class S>
Result<std::vector<Peer>> publishers(const S& subscriber, std::nothrow_t) {
    rnet_peer_list* list = nullptr;
    rnet_error* error = nullptr;
    rnet_code code = rnet_subscriber_publishers(subscriber.handle(), &list, &error);
    if (code != RNET_OK) return Error(static_cast<Code>(code), error);
    return detail::peers_from(list);
}
template <class S>
std::vector<Peer> publishers(const S& subscriber) {
    return publishers(subscriber, std::nothrow).value();
}

/// The subscribers that a publisher serves now.
template <class P>
Result<std::vector<Peer>> subscribers(const P& publisher, std::nothrow_t) {
    rnet_peer_list* list = nullptr;
    rnet_error* error = nullptr;
    rnet_code code = rnet_publisher_subscribers(publisher.handle(), &list, &error);
    if (code != RNET_OK) return Error(static_cast<Code>(code), error);
    return detail::peers_from(list);
}
template <class P>
std::vector<Peer> subscribers(const P& publisher) {
    return subscribers(publisher, std::nothrow).value();
}

/// The texts of the errors of subscribers that a publisher cannot serve.
template <class P>
Result<std::vector<std::string>> incompatible(const P& publisher, std::nothrow_t) {
    rnet_error_list* list = nullptr;
    rnet_error* error = nullptr;
    rnet_code code = rnet_publisher_incompatible(publisher.handle(), &list, &error);
    if (code != RNET_OK) return Error(static_cast<Code>(code), error);
    detail::Handle<rnet_error_list, rnet_error_list_free> owned(list);
    std::vector<std::string> texts;
    for (std::size_t at = 0; at < rnet_error_list_count(list); ++at) {
        texts.push_back(rnet_error_text(rnet_error_list_get(list, at)));
    }
    return texts;
}
template <class P>
std::vector<std::string> incompatible(const P& publisher) {
    return incompatible(publisher, std::nothrow).value();
}

/// The names of the other nodes of this host.
template <class N>
Result<std::vector<std::string>> peers(const N& node, std::nothrow_t) {
    rnet_name_list* list = nullptr;
    rnet_error* error = nullptr;
    rnet_code code = rnet_node_peers(node.handle(), &list, &error);
    if (code != RNET_OK) return Error(static_cast<Code>(code), error);
    return detail::names_from(list);
}
template <class N>
std::vector<std::string> peers(const N& node) {
    return peers(node, std::nothrow).value();
}

}  // namespace rnet
