// What endpoints have counted, and their peers.
#pragma once

#include <rnet/entry.hpp>
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
inline auto counts_of(rnet_subscriber*) { return rnet_subscriber_get_counts; }
inline auto counts_of(rnet_subscription*) { return rnet_subscription_get_counts; }

/// The lists that functions of the C API give.
template <class F, class... Args>
Result<std::vector<PublisherStats>> stats_from(F&& function, Args&&... args) {
    auto made = result_of<rnet_stats_list*>(function, args...);
    if (!made) return made.error();
    const Handle<rnet_stats_list, rnet_stats_list_free> list(*made);
    std::vector<PublisherStats> all;
    for (std::size_t at = 0; const rnet_publisher_stats* it = rnet_stats_list_get(list.get(), at); ++at) {
        all.push_back({it->publisher, it->node, it->connected, it->received, it->lost_overrun, it->lost_link,
                       it->lost_restart, it->lost_detached, it->skipped, it->expired, it->deadline_missed,
                       it->malformed, {it->behind, std::chrono::nanoseconds(it->behind_age_ns)}});
    }
    return all;
}
template <class F, class Object>
Result<std::vector<Peer>> peers_from(F&& function, Object* object) {
    auto made = result_of<rnet_peer_list*>(function, object);
    if (!made) return made.error();
    const Handle<rnet_peer_list, rnet_peer_list_free> list(*made);
    std::vector<Peer> all;
    for (std::size_t at = 0; const rnet_peer* it = rnet_peer_list_get(list.get(), at); ++at) {
        all.push_back({it->id, it->node});
    }
    return all;
}

/// What a subscriber or subscription has counted for all publishers together.
template <class S>
Result<rnet_subscriber_counts> counts(const S& subscriber) {
    auto* handle = subscriber.handle();
    return filled_by<rnet_subscriber_counts>(counts_of(handle), handle);
}

}  // namespace detail

/// Received and lost messages of a subscriber or subscription, by publisher, including former ones.
template <class S>
Result<std::vector<PublisherStats>> stats(const S& subscriber, std::nothrow_t) {
    return detail::stats_from(detail::stats_of(subscriber.handle()), subscriber.handle());
}
template <class S>
std::vector<PublisherStats> stats(const S& subscriber) {
    return stats(subscriber, std::nothrow).value();
}

/// The backlog of a subscriber or subscription from all publishers together.
template <class S>
Result<Backlog> behind(const S& subscriber, std::nothrow_t) {
    auto counts = detail::counts(subscriber);
    if (!counts) return counts.error();
    return Backlog{counts->behind, std::chrono::nanoseconds(counts->behind_age_ns)};
}
template <class S>
Backlog behind(const S& subscriber) {
    return behind(subscriber, std::nothrow).value();
}

/// Number of publishers of a subscriber or subscription that are alive or not.
template <class S>
Result<Liveliness> liveliness(const S& subscriber, std::nothrow_t) {
    auto counts = detail::counts(subscriber);
    if (!counts) return counts.error();
    return Liveliness{counts->alive, counts->not_alive};
}
template <class S>
Liveliness liveliness(const S& subscriber) {
    return liveliness(subscriber, std::nothrow).value();
}

/// The publishers that are matched with a subscriber now.
template <class S>
Result<std::vector<Peer>> publishers(const S& subscriber, std::nothrow_t) {
    return detail::peers_from(rnet_subscriber_publishers, subscriber.handle());
}
template <class S>
std::vector<Peer> publishers(const S& subscriber) {
    return publishers(subscriber, std::nothrow).value();
}

/// The subscribers that a publisher serves now.
template <class P>
Result<std::vector<Peer>> subscribers(const P& publisher, std::nothrow_t) {
    return detail::peers_from(rnet_publisher_subscribers, publisher.handle());
}
template <class P>
std::vector<Peer> subscribers(const P& publisher) {
    return subscribers(publisher, std::nothrow).value();
}

/// The texts of the errors of subscribers that a publisher cannot serve.
template <class P>
Result<std::vector<std::string>> incompatible(const P& publisher, std::nothrow_t) {
    auto made = detail::result_of<rnet_error_list*>(rnet_publisher_incompatible, publisher.handle());
    if (!made) return made.error();
    const detail::Handle<rnet_error_list, rnet_error_list_free> list(*made);
    std::vector<std::string> texts;
    for (std::size_t at = 0; const rnet_error* error = rnet_error_list_get(list.get(), at); ++at) {
        texts.push_back(rnet_error_text(error));
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
    return detail::texts_from(rnet_node_peers, node.handle());
}
template <class N>
std::vector<std::string> peers(const N& node) {
    return peers(node, std::nothrow).value();
}

}  // namespace rnet
