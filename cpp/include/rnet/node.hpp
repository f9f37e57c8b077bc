// Nodes, which create all other objects.
#pragma once

#include <rnet/publisher.hpp>
#include <rnet/subscriber.hpp>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rnet {

/// Options of a node. An empty text means the default.
struct NodeOptions {
    /// The domain; default RNET_DOMAIN, else "0".
    std::string domain = {};
    /// Directory of shared memory; default RNET_DIR, else /dev/shm.
    std::string dir = {};
    /// Group of users who share the domain; default RNET_GROUP, else none.
    std::string group = {};
    /// Directory of durable state; default RNET_STATE_DIR, else ~/.local/state/rnet.
    std::string state_dir = {};
    /// Prefix of names without a leading slash; default RNET_NAMESPACE, else none.
    std::string name_space = {};
    /// Rules that replace names, before those of RNET_REMAP: {"/scan", "/front/scan"}. The first that matches
    /// applies.
    std::vector<std::pair<std::string, std::string>> remaps = {};
    /// Whether the node follows the simulated time of /clock; default RNET_SIM_TIME.
    std::optional<bool> sim_time = {};
    /// Whether waiting threads change their time slice and timer slack.
    bool tune_threads = true;
};

/// A named participant of a domain. Any thread may use it. Its endpoints keep it alive when it is destroyed;
/// close() closes them all.
class Node {
public:
    /// Joins a domain.
    explicit Node(std::string_view name, const NodeOptions& options = {})
        : Node(create(name, options, std::nothrow).value()) {}
    /// As the constructor, without exceptions.
    static Result<Node> create(std::string_view name, std::nothrow_t) {
        return create(name, {}, std::nothrow);
    }
    static Result<Node> create(std::string_view name, const NodeOptions& given, std::nothrow_t) {
        auto options = detail::initialised<rnet_node_options>();
        std::vector<rnet_remap> remaps;
        for (const auto& [from, to] : given.remaps) remaps.push_back({from.c_str(), to.c_str()});
        options.domain = text(given.domain);
        options.dir = text(given.dir);
        options.group = text(given.group);
        options.state_dir = text(given.state_dir);
        options.name_space = text(given.name_space);
        options.remaps = remaps.data();
        options.remap_count = remaps.size();
        options.sim_time = given.sim_time ? (*given.sim_time ? 1 : 2) : 0;
        options.tune_threads = given.tune_threads ? 0 : 2;
        options.language = "cpp";
        return detail::made_by<Node>(rnet_node_new, detail::CText(name), &options);
    }
    /// Takes over an object of the C API.
    explicit Node(rnet_node* handle) noexcept : handle_(handle) {}

    /// The name, with its namespace.
    std::string_view name() const& noexcept { return rnet_node_name(handle()); }
    std::string name() && { return std::string(name()); }
    /// The domain.
    std::string_view domain() const& noexcept { return rnet_node_domain(handle()); }
    std::string domain() && { return std::string(domain()); }
    /// The time of the node: CLOCK_MONOTONIC, or the simulated time that it follows.
    std::chrono::nanoseconds now() const { return now(std::nothrow).value(); }
    Result<std::chrono::nanoseconds> now(std::nothrow_t) const {
        auto now_ns = detail::result_of<std::uint64_t>(rnet_node_now, handle());
        if (!now_ns) return now_ns.error();
        return std::chrono::nanoseconds(static_cast<std::int64_t>(*now_ns));
    }
    /// Closes the node and all objects that it created: their calls fail with Code::closed from then on, and
    /// waits end.
    void close() noexcept {
        rnet_node_close(handle());
        detail::from_library();
    }

    /// Creates a publisher of messages of type T; without a type, of bytes.
    template <class T = Bytes>
    Publisher<T> publisher(std::string_view topic, const PublisherOptions& options = {}) const {
        return publisher<T>(topic, options, std::nothrow).value();
    }
    template <class T = Bytes>
    Result<Publisher<T>> publisher(std::string_view topic, std::nothrow_t) const {
        return publisher<T>(topic, {}, std::nothrow);
    }
    template <class T = Bytes>
    Result<Publisher<T>> publisher(std::string_view topic, const PublisherOptions& options,
                                   std::nothrow_t) const {
        if (auto valid = detail::check_times(options); !valid) return valid.error();
        auto type = Message<T>::type();
        if (!type) return type.error();
        const auto given = detail::options_of(options, *type);
        return detail::made_by<Publisher<T>>(rnet_publisher_new, handle(), detail::CText(topic), &given);
    }

    /// Subscribes to messages of type T; without a type, to every message, as bytes.
    template <class T = Bytes>
    Subscriber<T> subscriber(std::string_view topic, const SubscriberOptions& options = {}) const {
        return subscriber<T>(topic, options, std::nothrow).value();
    }
    template <class T = Bytes>
    Result<Subscriber<T>> subscriber(std::string_view topic, std::nothrow_t) const {
        return subscriber<T>(topic, SubscriberOptions(), std::nothrow);
    }
    template <class T = Bytes>
    Result<Subscriber<T>> subscriber(std::string_view topic, const SubscriberOptions& options,
                                     std::nothrow_t) const {
        auto type = Message<T>::type();
        if (!type) return type.error();
        const auto given = detail::options_of(options, *type);
        return detail::made_by<Subscriber<T>>(rnet_subscriber_new, handle(), detail::CText(topic), &given);
    }

    /// Subscribes with a callback: see Subscriber::on().
    template <class T = Bytes, class F, class = std::enable_if_t<detail::is_callback<F, T>>>
    Subscription subscriber(std::string_view topic, F&& callback,
                            const SubscriberOptions& options = {}) const {
        return subscriber<T>(topic, std::forward<F>(callback), options, std::nothrow).value();
    }
    template <class T = Bytes, class F, class = std::enable_if_t<detail::is_callback<F, T>>>
    Result<Subscription> subscriber(std::string_view topic, F&& callback, const SubscriberOptions& options,
                                    std::nothrow_t) const {
        auto made = subscriber<T>(topic, options, std::nothrow);
        if (!made) return made.error();
        return made->on(std::forward<F>(callback), detail::IgnoreErrors(), std::nothrow);
    }

    rnet_node* handle() const noexcept { return handle_.get(); }

private:
    static const char* text(const std::string& given) { return given.empty() ? nullptr : given.c_str(); }

    detail::Handle<rnet_node, rnet_node_free> handle_;
};

/// The version of the library: "0.1.0".
inline std::string_view version() noexcept { return rnet_version(); }
/// The time of the host: CLOCK_MONOTONIC, as in the stamps of messages.
inline std::chrono::nanoseconds now() noexcept {
    return std::chrono::nanoseconds(static_cast<std::int64_t>(rnet_now_ns()));
}

}  // namespace rnet
