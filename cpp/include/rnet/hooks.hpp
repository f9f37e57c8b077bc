// Callbacks for events:
//
//     rnet::Guard guard = rnet::on_match(publisher, [](const rnet::MatchEvent& event) {
//         std::cout << event.node() << '\n';
//     });
//
// A callback runs on the node's thread for the bulk lane, until its Guard is destroyed. Each function has a
// second form, with std::nothrow, that returns a Result.
#pragma once

#include <rnet/detail/callback.hpp>
#include <rnet/error.hpp>
#include <rnet/guard.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

namespace rnet {

enum class MatchKind {
    other = RNET_MATCH_OTHER,
    matched = RNET_MATCH_MATCHED,
    unmatched = RNET_MATCH_UNMATCHED,
    lost = RNET_MATCH_LOST,
    changed = RNET_MATCH_CHANGED,
    admission_requested = RNET_MATCH_ADMISSION_REQUESTED,
    incompatible = RNET_MATCH_INCOMPATIBLE,
};

/// A match change of a publisher or subscriber. Valid until the callback returns.
class MatchEvent {
public:
    explicit MatchEvent(const rnet_match_event* event) noexcept : event_(event) {}
    MatchKind kind() const noexcept { return static_cast<MatchKind>(rnet_match_event_kind(event_)); }
    /// The id of the peer; 0 if it is incompatible.
    std::uint64_t id() const noexcept { return rnet_match_event_id(event_); }
    /// The node of the peer; empty if it is incompatible.
    std::string_view node() const noexcept { return rnet_match_event_node(event_); }
    /// Why the peer is incompatible, naming both nodes; empty for other events.
    std::string_view why() const noexcept { return rnet_error_text(rnet_match_event_error(event_)); }
    const rnet_match_event* handle() const noexcept { return event_; }

private:
    const rnet_match_event* event_;
};

/// Deadline periods in which a publisher sent nothing. Valid until the callback returns.
class DeadlineEvent {
public:
    explicit DeadlineEvent(const rnet_deadline_event* event) noexcept : event_(event) {}
    /// The id of the publisher.
    std::uint64_t publisher() const noexcept { return rnet_deadline_event_publisher(event_); }
    std::string_view node() const noexcept { return rnet_deadline_event_node(event_); }
    /// Periods since the last such event, 1 or more.
    std::uint64_t missed() const noexcept { return rnet_deadline_event_missed(event_); }
    /// Periods so far.
    std::uint64_t total() const noexcept { return rnet_deadline_event_total(event_); }
    const rnet_deadline_event* handle() const noexcept { return event_; }

private:
    const rnet_deadline_event* event_;
};

/// Number of connected publishers.
struct Liveliness {
    std::size_t alive = 0;
    /// Those that have not shown a sign of life for longer than their lease.
    std::size_t not_alive = 0;
};

/// A publisher has become alive, or is no longer alive. Valid until the callback returns.
class LivelinessEvent {
public:
    explicit LivelinessEvent(const rnet_liveliness_event* event) noexcept : event_(event) {}
    /// The id of the publisher.
    std::uint64_t publisher() const noexcept { return rnet_liveliness_event_publisher(event_); }
    std::string_view node() const noexcept { return rnet_liveliness_event_node(event_); }
    bool is_alive() const noexcept { return rnet_liveliness_event_is_alive(event_); }
    /// After the change.
    Liveliness counts() const noexcept {
        return {rnet_liveliness_event_alive_count(event_), rnet_liveliness_event_not_alive_count(event_)};
    }
    const rnet_liveliness_event* handle() const noexcept { return event_; }

private:
    const rnet_liveliness_event* event_;
};

enum class NodeChange {
    other = RNET_NODE_OTHER,
    joined = RNET_NODE_JOINED,
    left = RNET_NODE_LEFT,
    died = RNET_NODE_DIED,
};

/// A node has joined, left or died. Valid until the callback returns.
class NodeEvent {
public:
    explicit NodeEvent(const rnet_node_event* event) noexcept : event_(event) {}
    NodeChange kind() const noexcept { return static_cast<NodeChange>(rnet_node_event_kind(event_)); }
    /// "@host/node" for a node of another host.
    std::string_view node() const noexcept { return rnet_node_event_node(event_); }
    const rnet_node_event* handle() const noexcept { return event_; }

private:
    const rnet_node_event* event_;
};

enum class EndpointKind {
    other = RNET_ENDPOINT_OTHER,
    opened = RNET_ENDPOINT_OPENED,
    changed = RNET_ENDPOINT_CHANGED,
    closed = RNET_ENDPOINT_CLOSED,
    lost = RNET_ENDPOINT_LOST,
};

/// A publisher or subscriber of the domain was opened or closed. Valid until the callback returns.
class EndpointEvent {
public:
    explicit EndpointEvent(const rnet_endpoint_event* event) noexcept : event_(event) {}
    EndpointKind kind() const noexcept { return static_cast<EndpointKind>(rnet_endpoint_event_kind(event_)); }
    std::uint64_t id() const noexcept { return rnet_endpoint_event_id(event_); }
    bool is_publisher() const noexcept { return rnet_endpoint_event_is_publisher(event_); }
    std::string_view topic() const noexcept { return rnet_endpoint_event_topic(event_); }
    std::string_view node() const noexcept { return rnet_endpoint_event_node(event_); }
    /// Empty for raw bytes.
    std::string_view type_name() const noexcept { return rnet_endpoint_event_type_name(event_); }
    /// Its quality of service.
    std::string_view qos_json() const noexcept { return rnet_endpoint_event_qos_json(event_); }
    /// Number of endpoints that it represents: 1, or more for subscribers of another host.
    std::uint32_t count() const noexcept { return rnet_endpoint_event_count(event_); }
    const rnet_endpoint_event* handle() const noexcept { return event_; }

private:
    const rnet_endpoint_event* event_;
};

namespace detail {

/// Calls a function of C++ with a view of an event of the C API.
template <class View, class Event, class Function>
void call_with(const Event* event, void* context) {
    const View view(event);
    guarded([&] { (*static_cast<Function*>(context))(view); });
}

/// Registers a function with `add`, a function of the C API with the argument `how`.
template <class Function, class Add, class Object, class How, class F>
Result<Guard> hook(Add add, Object* object, How how, F&& callback) {
    return made_by<Guard>(add, object, how, context_of(std::forward<F>(callback)), free_context<Function>);
}

inline auto add_events(rnet_publisher*) { return rnet_publisher_on_event; }
inline auto add_events(rnet_subscriber*) { return rnet_subscriber_on_event; }
inline auto add_events(rnet_subscription*) { return rnet_subscription_on_event; }

/// Registers a function for the events that `callbacks` has.
template <class T, class F>
Result<Guard> hook_events(const T& endpoint, const rnet_event_callbacks& callbacks, F&& callback) {
    auto* handle = endpoint.handle();
    return hook<std::decay_t<F>>(add_events(handle), handle, &callbacks, std::forward<F>(callback));
}

}  // namespace detail

/// Calls `callback(const MatchEvent&)` for each match change of a publisher, subscriber or subscription.
template <class T, class F>
Result<Guard> on_match(const T& endpoint, F&& callback, std::nothrow_t) {
    auto callbacks = detail::initialised<rnet_event_callbacks>();
    callbacks.on_match = detail::call_with<MatchEvent, rnet_match_event, std::decay_t<F>>;
    return detail::hook_events(endpoint, callbacks, std::forward<F>(callback));
}
template <class T, class F>
Guard on_match(const T& endpoint, F&& callback) {
    return on_match(endpoint, std::forward<F>(callback), std::nothrow).value();
}

/// Calls `callback(const DeadlineEvent&)` for missed deadlines of a publisher, or of the publishers of a
/// subscriber or subscription.
template <class T, class F>
Result<Guard> on_deadline(const T& endpoint, F&& callback, std::nothrow_t) {
    auto callbacks = detail::initialised<rnet_event_callbacks>();
    callbacks.on_deadline = detail::call_with<DeadlineEvent, rnet_deadline_event, std::decay_t<F>>;
    return detail::hook_events(endpoint, callbacks, std::forward<F>(callback));
}
template <class T, class F>
Guard on_deadline(const T& endpoint, F&& callback) {
    return on_deadline(endpoint, std::forward<F>(callback), std::nothrow).value();
}

/// Calls `callback(const LivelinessEvent&)` when a publisher of a subscriber or subscription becomes alive,
/// or is no longer alive.
template <class T, class F>
Result<Guard> on_liveliness(const T& endpoint, F&& callback, std::nothrow_t) {
    auto callbacks = detail::initialised<rnet_event_callbacks>();
    callbacks.on_liveliness = detail::call_with<LivelinessEvent, rnet_liveliness_event, std::decay_t<F>>;
    return detail::hook_events(endpoint, callbacks, std::forward<F>(callback));
}
template <class T, class F>
Guard on_liveliness(const T& endpoint, F&& callback) {
    return on_liveliness(endpoint, std::forward<F>(callback), std::nothrow).value();
}

/// Calls `callback(const NodeEvent&)` when nodes of the domain join, leave or die.
template <class N, class F>
Result<Guard> on_node(const N& node, F&& callback, std::nothrow_t) {
    using Function = std::decay_t<F>;
    return detail::hook<Function>(rnet_node_on_node, node.handle(),
                                  detail::call_with<NodeEvent, rnet_node_event, Function>, std::forward<F>(callback));
}
template <class N, class F>
Guard on_node(const N& node, F&& callback) {
    return on_node(node, std::forward<F>(callback), std::nothrow).value();
}

/// Calls `callback(const EndpointEvent&)` for each publisher and subscriber of the domain: once for each that
/// exists, then when one is opened or closed.
template <class N, class F>
Result<Guard> on_endpoint(const N& node, F&& callback, std::nothrow_t) {
    using Function = std::decay_t<F>;
    return detail::hook<Function>(rnet_node_on_endpoint, node.handle(),
                                  detail::call_with<EndpointEvent, rnet_endpoint_event, Function>, std::forward<F>(callback));
}
template <class N, class F>
Guard on_endpoint(const N& node, F&& callback) {
    return on_endpoint(node, std::forward<F>(callback), std::nothrow).value();
}

}  // namespace rnet
