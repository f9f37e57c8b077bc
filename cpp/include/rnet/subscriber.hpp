// Subscribers, and subscriptions with a callback.
#pragma once

#include <rnet/detail/callback.hpp>
#include <rnet/sample.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>

namespace rnet {

/// How a subscriber waits for the next message.
enum class Wait : int {
    /// Spins for as long as a message is likely, then sleeps.
    adaptive = RNET_WAIT_ADAPTIVE,
    /// Spins: lowest latency, one processor core.
    spin = RNET_WAIT_SPIN,
    /// Sleeps at once: least processor time.
    block = RNET_WAIT_BLOCK,
};

/// The lane of a topic.
enum class Lane : int {
    /// That of the publisher.
    any = RNET_LANE_DEFAULT,
    /// The lane of ordinary messages.
    bulk = RNET_LANE_BULK,
    /// The lane that bulk messages do not delay.
    urgent = RNET_LANE_URGENT,
};

/// Options of Node::subscriber().
struct SubscriberOptions {
    /// Keeps the last n unread messages of each publisher and skips older ones; default 10, or all if
    /// reliable.
    std::uint32_t keep_last = 0;
    /// Whether to keep all unread messages that the publisher's log still holds.
    bool keep_all = false;
    /// Whether reliable publishers wait for this subscriber.
    bool reliable = false;
    /// Whether to receive first the messages that publishers keep for late subscribers.
    bool transient_local = false;
    /// How to wait.
    Wait wait = Wait::adaptive;
    /// The lane that publishers must have.
    Lane lane = Lane::any;
    /// Requests a message of each publisher at least this often.
    std::optional<std::chrono::nanoseconds> deadline = {};
    /// Requests publishers that show that they are alive at least this often.
    std::optional<std::chrono::nanoseconds> liveliness_lease = {};
};

/// Lost messages, by cause.
struct LossCounts {
    /// The subscriber was too slow, and the publisher did not wait for it.
    std::uint64_t overrun = 0;
    /// Lost between hosts.
    std::uint64_t link = 0;
    /// The publisher restarted its log.
    std::uint64_t restart = 0;
    /// The publisher detached the subscriber.
    std::uint64_t detached = 0;

    std::uint64_t total() const noexcept { return overrun + link + restart + detached; }
};

namespace detail {

inline rnet_subscriber_options options_of(const SubscriberOptions& given, const Type& type) {
    auto options = initialised<rnet_subscriber_options>();
    options.message_type = type.handle();
    options.keep_last = given.keep_last;
    options.keep_all = given.keep_all;
    options.reliable = given.reliable;
    options.transient_local = given.transient_local;
    options.wait = static_cast<int>(given.wait);
    options.lane = static_cast<int>(given.lane);
    options.deadline_ns = option_ns(given.deadline);
    options.liveliness_lease_ns = option_ns(given.liveliness_lease);
    return options;
}

/// Makes views of borrowed samples, and counts those that cannot be decoded.
template <class T>
class SampleReader {
public:
    Result<SampleView<T>> view(const rnet_sample* sample) {
        auto view = SampleView<T>::of(sample, buffer_);
        if (!view) return malformed(sample, view.error());
        return view;
    }
    /// Makes the counter. Without one, malformed messages are reported and not counted.
    void count_for(rnet_subscriber* subscriber) {
        auto counter = result_of<rnet_malformed_counter*>(rnet_malformed_counter_new, subscriber);
        if (counter) counter_.reset(*counter);
    }

private:
    Error malformed(const rnet_sample* sample, const Error& why) const {
        if (!counter_) return why;
        const std::uint64_t publisher = rnet_sample_publisher(sample);
        return success_of(rnet_malformed_counter_count, counter_.get(), publisher, why.what()).error();
    }

    /// Memory for decoded messages, which is reused.
    std::unique_ptr<T> buffer_;
    Handle<rnet_malformed_counter, rnet_malformed_counter_free> counter_;
};

/// Whether F can be called with a view of T.
template <class F, class T>
inline constexpr bool is_callback = std::is_invocable_v<std::decay_t<F>&, SampleView<T>&>;

/// Accepts errors and does nothing.
struct IgnoreErrors {
    void operator()(const Error&) const noexcept {}
};

/// The context of a subscription's callbacks.
template <class T, class F, class E>
struct Listener {
    F on_message;
    E on_error;
    SampleReader<T> reader;

    static void message(const rnet_sample* sample, void* context) noexcept {
        auto& self = *static_cast<Listener*>(context);
        guarded([&] {
            auto view = self.reader.view(sample);
            if (view) {
                self.on_message(*view);
            } else {
                self.on_error(view.error());
            }
        });
    }
    static void error(const rnet_error* error, void* context) noexcept {
        auto& self = *static_cast<Listener*>(context);
        guarded([&] { self.on_error(Error::copy_of(error)); });
    }
};

}  // namespace detail

/// A subscriber whose messages go to a callback, until this is destroyed or closed. Then the callback does
/// not run and is not called again, except if that happens within a callback.
class [[nodiscard]] Subscription {
public:
    /// Takes over an object of the C API.
    explicit Subscription(rnet_subscription* handle) noexcept : handle_(handle) {}

    /// Waits until the callback has at least `count` publishers.
    void wait_for_publishers(std::size_t count = 1) { wait_for_publishers(count, std::nothrow).value(); }
    Result<void> wait_for_publishers(std::size_t count, std::nothrow_t) { return wait(count, RNET_FOREVER); }
    /// As wait_for_publishers(), for at most `limit`; then fails with Code::timeout.
    void wait_for_publishers_for(std::size_t count, detail::TimeLimit limit) {
        wait(count, limit.ns()).value();
    }
    Result<void> wait_for_publishers_for(std::size_t count, detail::TimeLimit limit, std::nothrow_t) {
        return wait(count, limit.ns());
    }
    /// Ends the callback.
    void close() noexcept { handle_.reset(); }

    rnet_subscription* handle() const noexcept { return handle_.get(); }

private:
    Result<void> wait(std::size_t count, std::int64_t limit_ns) {
        return detail::success_of(rnet_subscription_wait_for_publishers, handle(), count, limit_ns);
    }
    detail::Handle<rnet_subscription, rnet_subscription_free> handle_;
};

template <class T>
class Next;

/// Receives the messages of one topic. One thread at a time may use it; a second one gets Code::wrong_thread.
/// Made by Node::subscriber().
///
///     for (auto& sample : scans) use(*sample);           // until the node or the subscriber is closed
///
/// Receiving also reports, once each, an event of one publisher, while the others continue: Code::peer_lost,
/// detached, incompatible_type, incompatible_qos, corrupt, too_many_pins, and malformed messages.
template <class T = Bytes>
class Subscriber {
public:
    /// Takes over an object of the C API, whose type must be that of T.
    explicit Subscriber(rnet_subscriber* handle)
        : handle_(handle), state_(std::make_unique<State>()) {
        if constexpr (!detail::is_in_memory<T> || detail::has_data<T>) state_->reader.count_for(handle);
    }

    /// Waits for the next message, and makes it owned.
    Sample<T> recv() { return recv(std::nothrow).value(); }
    Result<Sample<T>> recv(std::nothrow_t) { return owned(recv_view(std::nothrow)); }
    /// As recv(), for at most `limit`; then fails with Code::timeout.
    Sample<T> recv_for(detail::TimeLimit limit) { return recv_for(limit, std::nothrow).value(); }
    Result<Sample<T>> recv_for(detail::TimeLimit limit, std::nothrow_t) {
        return owned(recv_view_for(limit, std::nothrow));
    }
    /// The next message, if available.
    std::optional<Sample<T>> try_recv() { return try_recv(std::nothrow).value(); }
    Result<std::optional<Sample<T>>> try_recv(std::nothrow_t) {
        return owned_if_any(try_take(rnet_subscriber_recv));
    }

    /// As recv(), with a message that is valid until the next call of the subscriber. It allocates nothing.
    SampleView<T> recv_view() { return recv_view(std::nothrow).value(); }
    Result<SampleView<T>> recv_view(std::nothrow_t) { return wait_for(rnet_subscriber_recv, RNET_FOREVER); }
    SampleView<T> recv_view_for(detail::TimeLimit limit) {
        return recv_view_for(limit, std::nothrow).value();
    }
    Result<SampleView<T>> recv_view_for(detail::TimeLimit limit, std::nothrow_t) {
        return wait_for(rnet_subscriber_recv, limit.wait_ns());
    }
    std::optional<SampleView<T>> try_recv_view() { return try_recv_view(std::nothrow).value(); }
    Result<std::optional<SampleView<T>>> try_recv_view(std::nothrow_t) {
        return try_take(rnet_subscriber_recv);
    }

    /// The next message, to be awaited in a coroutine: see rnet/coroutine.hpp.
    template <class Awaitable = Next<T>>
    Awaitable next() {
        return Awaitable(*this);
    }

    /// Waits for the newest unread message of all publishers. Older ones are counted as skipped.
    Sample<T> latest() { return latest(std::nothrow).value(); }
    Result<Sample<T>> latest(std::nothrow_t) {
        return owned(wait_for(rnet_subscriber_latest, RNET_FOREVER));
    }
    Sample<T> latest_for(detail::TimeLimit limit) { return latest_for(limit, std::nothrow).value(); }
    Result<Sample<T>> latest_for(detail::TimeLimit limit, std::nothrow_t) {
        return owned(wait_for(rnet_subscriber_latest, limit.wait_ns()));
    }
    std::optional<Sample<T>> try_latest() { return try_latest(std::nothrow).value(); }
    Result<std::optional<Sample<T>>> try_latest(std::nothrow_t) {
        return owned_if_any(try_take(rnet_subscriber_latest));
    }

    /// Waits until at least `count` publishers are matched: messages sent after that are received or counted
    /// as lost.
    void wait_for_publishers(std::size_t count = 1) { wait_for_publishers(count, std::nothrow).value(); }
    Result<void> wait_for_publishers(std::size_t count, std::nothrow_t) { return wait(count, RNET_FOREVER); }
    /// As wait_for_publishers(), for at most `limit`; then fails with Code::timeout.
    void wait_for_publishers_for(std::size_t count, detail::TimeLimit limit) {
        wait(count, limit.ns()).value();
    }
    Result<void> wait_for_publishers_for(std::size_t count, detail::TimeLimit limit, std::nothrow_t) {
        return wait(count, limit.ns());
    }

    /// Number of publishers that serve the subscriber now.
    std::size_t publisher_count() { return publisher_count(std::nothrow).value(); }
    Result<std::size_t> publisher_count(std::nothrow_t) {
        return detail::result_of<std::size_t>(rnet_subscriber_publisher_count, handle());
    }

    /// All losses so far, by cause.
    LossCounts lost() const { return lost(std::nothrow).value(); }
    Result<LossCounts> lost(std::nothrow_t) const {
        auto counts = detail::filled_by<rnet_subscriber_counts>(rnet_subscriber_get_counts, handle());
        if (!counts) return counts.error();
        return LossCounts{counts->lost_overrun, counts->lost_link, counts->lost_restart,
                          counts->lost_detached};
    }

    /// Calls `callback(SampleView<T>&)` for each message, and `on_error(const Error&)` for each error, on the
    /// node's thread for the lane of the topic, one at a time, until the subscription is destroyed.
    /// Exceptions are counted and logged. The subscriber is closed by it.
    template <class F, class E = detail::IgnoreErrors,
              class = std::enable_if_t<detail::is_callback<F, T>>>
    Subscription on(F&& callback, E&& on_error = {}) {
        return on(std::forward<F>(callback), std::forward<E>(on_error), std::nothrow).value();
    }
    template <class F>
    Result<Subscription> on(F&& callback, std::nothrow_t) {
        return on(std::forward<F>(callback), detail::IgnoreErrors(), std::nothrow);
    }
    template <class F, class E>
    Result<Subscription> on(F&& callback, E&& on_error, std::nothrow_t) {
        using Listener = detail::Listener<T, std::decay_t<F>, std::decay_t<E>>;
        auto listener = std::make_unique<Listener>(
            Listener{std::forward<F>(callback), std::forward<E>(on_error), std::move(state_->reader)});
        return detail::made_by<Subscription>(rnet_subscriber_on, handle(), Listener::message, Listener::error,
                                             listener.release(), detail::free_context<Listener>);
    }

    /// Closes the subscriber: its calls fail with Code::closed from then on. Any thread may call this, which
    /// ends a wait.
    void close() noexcept { rnet_subscriber_close(handle()); }

    /// The end of the messages: the subscriber was closed.
    struct End {};
    /// Receives in a loop. Errors of single publishers and malformed messages are skipped; the tools show
    /// them.
    class Iterator {
    public:
        using iterator_category = std::input_iterator_tag;
        using value_type = SampleView<T>;
        using difference_type = std::ptrdiff_t;
        using pointer = SampleView<T>*;
        using reference = SampleView<T>&;

        Iterator() = default;
        SampleView<T>& operator*() const noexcept { return *subscriber_->state_->current; }
        SampleView<T>* operator->() const noexcept { return &*subscriber_->state_->current; }
        Iterator& operator++() {
            if (!subscriber_->advance()) subscriber_ = nullptr;
            return *this;
        }
        void operator++(int) { ++*this; }
        friend bool operator==(const Iterator& at, End) noexcept { return at.subscriber_ == nullptr; }
        friend bool operator==(End, const Iterator& at) noexcept { return at.subscriber_ == nullptr; }
        friend bool operator!=(const Iterator& at, End) noexcept { return at.subscriber_ != nullptr; }
        friend bool operator!=(End, const Iterator& at) noexcept { return at.subscriber_ != nullptr; }

    private:
        friend class Subscriber;
        explicit Iterator(Subscriber* subscriber) : subscriber_(subscriber) { ++*this; }
        Subscriber* subscriber_ = nullptr;
    };
    /// Waits for the first message.
    Iterator begin() { return Iterator(this); }
    End end() const noexcept { return {}; }

    rnet_subscriber* handle() const noexcept { return handle_.get(); }

private:
    using Take = rnet_code (*)(rnet_subscriber*, std::int64_t, const rnet_sample**, rnet_error**);

    /// What views refer to, which stays where it is when the subscriber is moved.
    struct State {
        detail::SampleReader<T> reader;
        std::optional<SampleView<T>> current;
    };

    Result<SampleView<T>> wait_for(Take take, std::int64_t limit_ns) {
        auto sample = detail::result_of<const rnet_sample*>(take, handle(), limit_ns);
        if (!sample) return sample.error();
        return state_->reader.view(*sample);
    }
    Result<std::optional<SampleView<T>>> try_take(Take take) {
        auto sample = detail::result_of<const rnet_sample*>(take, handle(), 0);
        if (!sample) return sample.error();
        if (!*sample) return std::optional<SampleView<T>>();
        auto view = state_->reader.view(*sample);
        if (!view) return view.error();
        return std::optional<SampleView<T>>(std::move(*view));
    }
    static Result<Sample<T>> owned(Result<SampleView<T>> view) {
        if (!view) return view.error();
        return view->keep(std::nothrow);
    }
    static Result<std::optional<Sample<T>>> owned_if_any(Result<std::optional<SampleView<T>>> taken) {
        if (!taken) return taken.error();
        if (!*taken) return std::optional<Sample<T>>();
        auto kept = (*taken)->keep(std::nothrow);
        if (!kept) return kept.error();
        return std::optional<Sample<T>>(std::move(*kept));
    }
    /// Receives the next message of a loop; false at the end.
    bool advance() {
        for (;;) {
            auto view = recv_view(std::nothrow);
            if (view) {
                state_->current.emplace(std::move(*view));
                return true;
            }
            switch (view.error().code()) {
                case Code::peer_lost:
                case Code::detached:
                case Code::incompatible_type:
                case Code::incompatible_qos:
                case Code::limit_reached:
                case Code::out_of_memory:
                case Code::corrupt:
                case Code::malformed:
                    continue;
                case Code::too_many_pins:  // Until the user drops a sample.
                    std::this_thread::sleep_for(std::chrono::milliseconds(1));
                    continue;
                case Code::closed:
                case Code::interrupted:
                    return false;
                default:  // A fault of the program, such as a second thread.
                    detail::raise(view.error());
            }
        }
    }
    Result<void> wait(std::size_t count, std::int64_t limit_ns) {
        return detail::success_of(rnet_subscriber_wait_for_publishers, handle(), count, limit_ns);
    }

    detail::Handle<rnet_subscriber, rnet_subscriber_free> handle_;
    std::unique_ptr<State> state_;
};

}  // namespace rnet
