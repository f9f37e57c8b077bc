// One callback for all topics that match a pattern:
//
//     auto all = rnet::subscribe_any(node, "/camera/*/image", [](const rnet::SampleView<>& sample) {
//         std::cout << sample.topic() << ": " << sample.bytes().size() << " bytes\n";
//     });
#pragma once

#include <rnet/stats.hpp>
#include <rnet/subscriber.hpp>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rnet {

/// A callback for all topics that match a pattern, until this is destroyed. Then it does not run and is not
/// called again, except if that happens within a callback.
class [[nodiscard]] AnySubscription {
public:
    /// Takes over an object of the C API.
    explicit AnySubscription(rnet_any_subscription* handle) noexcept : handle_(handle) {}

    /// The topics found so far, including those without a publisher now.
    std::vector<std::string> topics() const { return topics(std::nothrow).value(); }
    Result<std::vector<std::string>> topics(std::nothrow_t) const {
        return detail::texts_from(rnet_any_subscription_topics, handle());
    }
    /// Received and lost messages of one topic by publisher.
    std::vector<PublisherStats> stats(std::string_view topic) const {
        return stats(topic, std::nothrow).value();
    }
    Result<std::vector<PublisherStats>> stats(std::string_view topic, std::nothrow_t) const {
        return detail::stats_from(rnet_any_subscription_stats, handle(), detail::CText(topic));
    }
    /// Ends the callback.
    void close() noexcept { handle_.reset(); }
    rnet_any_subscription* handle() const noexcept { return handle_.get(); }

private:
    detail::Handle<rnet_any_subscription, rnet_any_subscription_free> handle_;
};

/// Calls `callback(const SampleView<>&)` for each message of each topic that matches `pattern`, including
/// future topics. In a pattern, * matches one part of a name and ** any number of parts. The threads of the
/// urgent and the bulk lane may call it at the same time. `on_error(const Error&)` is called for each error.
template <class N, class F, class E = detail::IgnoreErrors>
Result<AnySubscription> subscribe_any(const N& node, std::string_view pattern, F&& callback,
                                      const SubscriberOptions& options, E&& on_error, std::nothrow_t) {
    using Listener = detail::Listener<Bytes, std::decay_t<F>, std::decay_t<E>>;
    const auto given = detail::options_of(options, Type());
    auto* listener = new Listener{std::forward<F>(callback), std::forward<E>(on_error), {}};
    return detail::made_by<AnySubscription>(rnet_node_subscribe_any, node.handle(), detail::CText(pattern),
                                            &given, Listener::message, Listener::error, listener,
                                            detail::free_context<Listener>);
}
template <class N, class F, class E = detail::IgnoreErrors>
AnySubscription subscribe_any(const N& node, std::string_view pattern, F&& callback,
                              const SubscriberOptions& options = {}, E&& on_error = {}) {
    auto made = subscribe_any(node, pattern, std::forward<F>(callback), options, std::forward<E>(on_error),
                              std::nothrow);
    return std::move(made).value();
}

}  // namespace rnet
