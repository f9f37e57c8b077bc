// A domain, inspected from outside: its nodes do not see it and are not slowed by it.
//
//     auto domain = rnet::Domain::open();
//     for (const rnet::NodeInfo& node : domain.snapshot().nodes()) std::cout << node.name << '\n';
//
//     auto follower = domain.follow("/imu");
//     while (true) {
//         const auto message = follower.recv();  // first, because the type is that of the last message
//         std::cout << rnet::to_json(follower.type(), message.data()) << '\n';
//     }
#pragma once

#include <rnet/detail/receiver.hpp>
#include <rnet/json.hpp>

#include <chrono>
#include <cstdint>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rnet {
namespace detail {

/// An array of texts of the C API.
inline std::vector<std::string> strings(const char* const* texts, std::size_t count) {
    return std::vector<std::string>(texts, texts + count);
}

/// Texts as an array for the C API, valid as long as the texts.
inline std::vector<const char*> pointers(const std::vector<std::string>& texts) {
    std::vector<const char*> pointers;
    for (const std::string& text : texts) pointers.push_back(text.c_str());
    return pointers;
}

/// A text for the C API; null if it is empty, which means the default.
inline const char* text_or_null(const std::string& text) { return text.empty() ? nullptr : text.c_str(); }

}  // namespace detail

/// A domain: by default that of the environment, as for a node.
struct DomainOptions {
    std::string domain = {};
    /// Directory of shared memory.
    std::string dir = {};
    /// Group of users who share the domain.
    std::string group = {};
};

/// A node at the time of a snapshot.
struct NodeInfo {
    /// "/arm"; on another host "@host/arm".
    std::string name;
    std::string language;
    std::string program;
    std::string version;
    /// Whether it is on another host. Only its name and topics are known then.
    bool is_remote = false;
    std::uint32_t pid = 0;
    std::uint32_t uid = 0;
    std::vector<std::string> publishes;
    std::vector<std::string> subscribes;
};

/// A topic at the time of a snapshot: the sum of its endpoints.
struct TopicInfo {
    std::string name;
    /// Of its first publisher, else of its first subscription; empty for raw bytes.
    std::string type_name;
    /// Whether the library itself uses it: requests, replies, logs.
    bool is_internal = false;
    std::size_t publisher_count = 0;
    std::size_t subscriber_count = 0;
    /// Messages sent by the current publishers, and their bytes.
    std::uint64_t sent = 0;
    std::uint64_t bytes = 0;
    /// Messages received and lost by the current subscriptions.
    std::uint64_t received = 0;
    std::uint64_t lost = 0;
};

/// A server of a service or action at the time of a snapshot.
struct ServiceInfo {
    std::string name;
    std::string node;
    std::string request_type;
    std::string reply_type;
    /// Only of an action.
    std::optional<std::string> feedback_type;
    std::size_t client_count = 0;
};

/// The nodes and endpoints of a domain at one time.
class DomainSnapshot {
public:
    /// Takes over an object of the C API.
    explicit DomainSnapshot(rnet_snapshot* made) noexcept : handle_(made) {}

    /// The nodes, by name; those of other hosts last.
    std::vector<NodeInfo> nodes() const {
        std::vector<NodeInfo> all;
        for (std::size_t at = 0; const rnet_node_info* it = rnet_snapshot_node(handle(), at); ++at) {
            all.push_back({it->name, it->language, it->program, it->version, it->is_remote, it->pid, it->uid,
                           detail::strings(it->publishes, it->publish_count),
                           detail::strings(it->subscribes, it->subscribe_count)});
        }
        return all;
    }
    /// The topics, by name.
    std::vector<TopicInfo> topics() const {
        std::vector<TopicInfo> all;
        for (std::size_t at = 0; const rnet_topic_info* it = rnet_snapshot_topic(handle(), at); ++at) {
            all.push_back({it->name, it->type_name, it->is_internal, it->publisher_count,
                           it->subscriber_count, it->sent, it->bytes, it->received, it->lost});
        }
        return all;
    }
    /// The servers, by service and node.
    std::vector<ServiceInfo> services() const {
        std::vector<ServiceInfo> all;
        for (std::size_t at = 0; const rnet_service_info* it = rnet_snapshot_service(handle(), at); ++at) {
            all.push_back({it->name, it->node, it->request_type, it->reply_type, {}, it->client_count});
            if (it->feedback_type) all.back().feedback_type = it->feedback_type;
        }
        return all;
    }
    /// Nodes of this host that died within ten minutes and were not restarted.
    std::vector<std::string> died() const { return detail::strings(info().died, info().died_count); }
    /// What could not be read, with its node.
    std::vector<std::string> problems() const {
        return detail::strings(info().problems, info().problem_count);
    }

    /// The type of a topic: that of its first publisher, else of its first subscription. Fails with
    /// Code::bad_value if no endpoint has the topic.
    Result<Type> type(std::string_view topic, std::nothrow_t) const {
        return Type::make(rnet_snapshot_topic_type, handle(), detail::CText(topic));
    }
    Type type(std::string_view topic) const { return type(topic, std::nothrow).value(); }

    /// All that the snapshot contains: also each publisher and subscription.
    Result<std::string> to_json(std::nothrow_t) const {
        return detail::contents_of<std::string>(rnet_snapshot_to_json, handle());
    }
    std::string to_json() const { return to_json(std::nothrow).value(); }

    const rnet_snapshot* handle() const noexcept { return handle_.get(); }

private:
    const rnet_snapshot_info& info() const { return *rnet_snapshot_describe(handle()); }
    detail::Handle<rnet_snapshot, rnet_snapshot_free> handle_;
};

/// A message that a Follower has read. Valid until the next call with the follower.
class FollowedMessage {
public:
    explicit FollowedMessage(const rnet_followed_message* message) : message_(message) {}

    std::string_view topic() const { return message_->topic; }
    /// Node of the publisher.
    std::string_view node() const { return message_->node; }
    /// Empty for raw bytes.
    std::string_view type_name() const { return message_->type_name; }
    std::uint64_t publisher() const { return message_->publisher; }
    /// Counted by the publisher from 0.
    std::uint64_t seq() const { return message_->seq; }
    /// In ns of CLOCK_MONOTONIC.
    std::uint64_t sent_ns() const { return message_->sent_ns; }
    /// Messages that the follower missed before this one because it was too slow.
    std::uint64_t missed() const { return message_->missed; }
    Bytes data() const { return {message_->data.data, message_->data.len}; }
    const rnet_followed_message* handle() const noexcept { return message_; }

private:
    const rnet_followed_message* message_;
};

/// Follows a topic from outside, with all its publishers. One thread at a time may use it.
class Follower : public detail::Receiver<Follower, FollowedMessage> {
public:
    /// Takes over an object of the C API.
    explicit Follower(rnet_follower* made) : handle_(made) {}

    /// The type of the last message, as its publisher declares it.
    Result<Type> type(std::nothrow_t) { return Type::make(rnet_follower_type, handle()); }
    Type type() { return type(std::nothrow).value(); }

    /// Ends a wait of another thread; all calls fail with Code::closed from then on.
    void close() noexcept { rnet_follower_close(handle()); }
    rnet_follower* handle() const noexcept { return handle_.get(); }

private:
    friend class detail::Receiver<Follower, FollowedMessage>;
    Result<std::optional<FollowedMessage>> take(std::int64_t timeout_ns) {
        using Message = const rnet_followed_message*;
        auto message = detail::result_of<Message>(rnet_follower_recv, handle(), timeout_ns);
        if (!message) return message.error();
        return *message ? std::optional<FollowedMessage>(*message) : std::optional<FollowedMessage>();
    }
    detail::Handle<rnet_follower, rnet_follower_free> handle_;
};

/// What has happened to a node.
enum class WatchedChange {
    joined = RNET_WATCHED_JOINED,
    left = RNET_WATCHED_LEFT,
    died = RNET_WATCHED_DIED,
};

/// A node that has joined, left or died.
struct WatchedNode {
    /// "/arm"; on another host "@host/arm".
    std::string node;
    WatchedChange change;
};

/// Watches the nodes of a domain from outside: receives each that joins, leaves or dies. Present nodes are
/// reported first, as joined. One thread at a time may use it.
class NodeWatcher : public detail::Receiver<NodeWatcher, WatchedNode> {
public:
    /// Takes over an object of the C API.
    explicit NodeWatcher(rnet_node_watcher* made) : handle_(made) {}

    /// Ends a wait of another thread; all calls fail with Code::closed from then on.
    void close() noexcept { rnet_node_watcher_close(handle()); }
    rnet_node_watcher* handle() const noexcept { return handle_.get(); }

private:
    friend class detail::Receiver<NodeWatcher, WatchedNode>;
    Result<std::optional<WatchedNode>> take(std::int64_t timeout_ns) {
        using Event = const rnet_watched_node*;
        auto found = detail::result_of<Event>(rnet_node_watcher_recv, handle(), timeout_ns);
        if (!found) return found.error();
        const rnet_watched_node* event = *found;
        if (!event) return std::optional<WatchedNode>();
        return std::make_optional(WatchedNode{event->node, static_cast<WatchedChange>(event->change)});
    }
    detail::Handle<rnet_node_watcher, rnet_node_watcher_free> handle_;
};

/// A domain, inspected from outside. It need not exist yet. One thread at a time may use it.
class Domain {
public:
    /// Takes over an object of the C API.
    explicit Domain(rnet_domain* made) noexcept : handle_(made) {}
    static Result<Domain> open(const DomainOptions& options, std::nothrow_t) {
        using detail::text_or_null;
        return detail::made_by<Domain>(rnet_domain_open, text_or_null(options.domain),
                                       text_or_null(options.dir), text_or_null(options.group));
    }
    static Domain open(const DomainOptions& options = {}) { return open(options, std::nothrow).value(); }

    std::string_view id() const& noexcept { return rnet_domain_id(handle()); }

    std::string id() && { return std::string(id()); }

    /// Inspects the whole domain. It is empty if no node has joined it yet.
    Result<DomainSnapshot> snapshot(std::nothrow_t) { return snapshot_of(nullptr); }
    DomainSnapshot snapshot() { return snapshot(std::nothrow).value(); }
    /// Inspects one topic: all nodes, and the endpoints of this topic.
    Result<DomainSnapshot> snapshot(std::string_view topic, std::nothrow_t) {
        return snapshot_of(std::string(topic).c_str());
    }
    DomainSnapshot snapshot(std::string_view topic) { return snapshot(topic, std::nothrow).value(); }

    /// Follows a topic, which need not exist yet. With `history`, the messages that transient_local
    /// publishers keep come first.
    Result<Follower> follow(std::string_view topic, bool history, std::nothrow_t) {
        return detail::made_by<Follower>(rnet_domain_follow, handle(), detail::CText(topic), history);
    }
    Follower follow(std::string_view topic, bool history = false) {
        return follow(topic, history, std::nothrow).value();
    }

    /// Watches the nodes.
    Result<NodeWatcher> watch_nodes(std::nothrow_t) {
        return detail::made_by<NodeWatcher>(rnet_domain_watch_nodes, handle());
    }
    NodeWatcher watch_nodes() { return watch_nodes(std::nothrow).value(); }

    rnet_domain* handle() const noexcept { return handle_.get(); }

private:
    Result<DomainSnapshot> snapshot_of(const char* topic) {
        return detail::made_by<DomainSnapshot>(rnet_domain_snapshot, handle(), topic);
    }
    detail::Handle<rnet_domain, rnet_domain_free> handle_;
};

}  // namespace rnet
