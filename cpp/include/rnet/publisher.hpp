// Publishers and loans.
#pragma once

#include <rnet/detail/callback.hpp>
#include <rnet/message.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rnet {

/// What a send of a reliable publisher does while a subscriber is full.
enum class OnFull : int {
    /// Waits for `full_timeout`, then fails with Code::full.
    wait = RNET_ON_FULL_WAIT,
    /// Fails with Code::full at once.
    refuse = RNET_ON_FULL_REFUSE,
    /// Waits; a subscriber that reads nothing for `full_timeout` is detached.
    detach = RNET_ON_FULL_DETACH,
};

/// Options of Node::publisher().
struct PublisherOptions {
    /// Whether subscribers may be reliable.
    bool reliable = false;
    /// What a send does while a reliable subscriber is full.
    OnFull on_full = OnFull::wait;
    /// The time for `on_full`; default 1 s.
    std::optional<std::chrono::nanoseconds> full_timeout = {};
    /// Number of messages that are kept for late subscribers.
    std::uint32_t transient_local = 0;
    /// Whether the topic is in the lane that bulk messages do not delay.
    bool urgent = false;
    /// Promises a message at least this often.
    std::optional<std::chrono::nanoseconds> deadline = {};
    /// Messages that are older than this expire.
    std::optional<std::chrono::nanoseconds> lifespan = {};
    /// The publisher is alive only while it sends, or calls assert_alive(), this often.
    std::optional<std::chrono::nanoseconds> liveliness_lease = {};
    /// The message that each subscriber receives if this process dies: encoded(message). Default: none.
    std::optional<std::vector<std::uint8_t>> last_will = {};
    /// Largest length of the log in bytes, a power of two; default 512 KiB.
    std::uint64_t log_len_bytes = 0;
    /// Whether to allocate all memory of the log now, so that a send never does.
    bool reserve_log = false;
    /// Largest memory for messages of more than 4096 bytes, in bytes; default 2 GiB.
    std::uint64_t pool_limit_bytes = 0;
    /// Number of messages of more than 4096 bytes that stay readable; default 11.
    std::uint32_t large_depth = 0;
};

/// Metadata of a message.
struct Meta {
    /// The time of its source in ns since 1970 UTC; 0: none.
    std::int64_t source_ns = 0;
    /// A number that relates it to another message; 0: none.
    std::uint64_t correlation = 0;
};

namespace detail {

inline rnet_publisher_options options_of(const PublisherOptions& given, const Type& type) {
    auto options = initialised<rnet_publisher_options>();
    options.message_type = type.handle();
    options.reliable = given.reliable;
    options.reserve_log = given.reserve_log;
    options.on_full = static_cast<int>(given.on_full);
    options.full_timeout_ns = option_ns(given.full_timeout);
    options.transient_local = given.transient_local;
    options.lane = given.urgent ? RNET_LANE_URGENT : RNET_LANE_DEFAULT;
    options.log_len_bytes = given.log_len_bytes;
    options.pool_limit_bytes = given.pool_limit_bytes;
    options.large_depth = given.large_depth;
    options.deadline_ns = option_ns(given.deadline);
    options.lifespan_ns = option_ns(given.lifespan);
    options.liveliness_lease_ns = option_ns(given.liveliness_lease);
    static const std::uint8_t empty = 0;
    if (given.last_will) {
        const auto& will = *given.last_will;
        options.last_will = {will.empty() ? &empty : will.data(), will.size()};
    }
    return options;
}

/// Times of 0 with which no message arrives.
inline Result<void> check_times(const PublisherOptions& options) {
    const auto is_zero = [](const auto& time) { return time && time->count() == 0; };
    if (is_zero(options.lifespan)) return Error(Code::bad_qos, "with a lifespan of 0 nothing is ever delivered");
    if (options.on_full == OnFull::detach && is_zero(options.full_timeout))
        return Error(Code::bad_qos, "with on_full detach and a full_timeout of 0 each reader is detached");
    return {};
}

inline rnet_meta meta_of(const Meta& given) {
    auto meta = initialised<rnet_meta>();
    meta.source_ns = given.source_ns;
    meta.correlation = given.correlation;
    return meta;
}

/// A loan of the C API.
class LoanHandle {
public:
    explicit LoanHandle(rnet_loan* loan) noexcept : handle_(loan) {}

    /// Sends the message without a copy. On an error it keeps its content, and may be sent again.
    void send() { send(std::nothrow).value(); }
    Result<void> send(std::nothrow_t) {
        return success_of(rnet_loan_send, handle_.get());
    }
    /// As send(), with metadata.
    void send(const Meta& meta) { send(meta, std::nothrow).value(); }
    Result<void> send(const Meta& meta, std::nothrow_t) {
        const auto given = meta_of(meta);
        return success_of(rnet_loan_send_with, handle_.get(), &given);
    }
    rnet_loan* handle() const noexcept { return handle_.get(); }

protected:
    Span<std::uint8_t> memory() const noexcept {
        const rnet_mut_bytes bytes = rnet_loan_data(handle_.get());
        return {bytes.data, bytes.len};
    }

private:
    Handle<rnet_loan, rnet_loan_free> handle_;
};

}  // namespace detail

/// Memory for a plain message, which its subscribers read where it is. Its fields have arbitrary values until
/// they are written. A loan that is not sent sends nothing.
template <class T>
class Loan : public detail::LoanHandle {
public:
    explicit Loan(rnet_loan* loan) noexcept
        : LoanHandle(loan), message_(::new (rnet_loan_data(loan).data) T) {}

    /// The message. Not to be used after send().
    T& operator*() const& noexcept { return *message_; }
    T& operator*() && = delete;  // It would end with the loan: keep that in a variable.
    T* operator->() const noexcept { return message_; }

private:
    T* message_;
};

/// Memory for a message of bytes. A loan that is not sent sends nothing.
template <>
class Loan<Bytes> : public detail::LoanHandle {
public:
    using LoanHandle::LoanHandle;

    /// The memory, 8-byte aligned, with arbitrary values; empty after send().
    Span<std::uint8_t> span() && = delete;  // It would end with the loan: keep that in a variable.
    Span<std::uint8_t> span() const& noexcept { return memory(); }
    std::uint8_t* data() const noexcept { return span().data(); }
    std::size_t size() const noexcept { return span().size(); }
    std::uint8_t& operator[](std::size_t at) const noexcept { return span()[at]; }
    /// Sends only the first `len` bytes. Fails with Code::bad_value if it has fewer.
    void truncate(std::size_t len) { truncate(len, std::nothrow).value(); }
    Result<void> truncate(std::size_t len, std::nothrow_t) {
        rnet_error* error = nullptr;
        return detail::check(rnet_loan_truncate(handle(), len, &error), error);
    }
};

/// Memory for a message that its data follows: see rnet/msgs/plain.hpp.
template <class T>
class DataLoan;

/// Sends messages of type T on one topic. One thread at a time may use it; a second one gets
/// Code::wrong_thread. Made by Node::publisher().
template <class T = Bytes>
class Publisher {
public:
    /// Takes over an object of the C API, whose type must be that of T.
    explicit Publisher(rnet_publisher* handle) noexcept : handle_(handle) {}

    /// Sends one message. On an error it was not sent.
    void send(const T& message) { send(message, std::nothrow).value(); }
    Result<void> send(const T& message, std::nothrow_t) {
        detail::EncodeBuffer<T> scratch;
        return send_bytes(Message<T>::encode(message, scratch.buffer()));
    }
    /// Sends one message with metadata.
    void send(const T& message, const Meta& meta) { send(message, meta, std::nothrow).value(); }
    Result<void> send(const T& message, const Meta& meta, std::nothrow_t) {
        detail::EncodeBuffer<T> scratch;
        const Bytes bytes = Message<T>::encode(message, scratch.buffer());
        const auto given = detail::meta_of(meta);
        return detail::success_of(rnet_publisher_send_with, handle(), bytes.data(), bytes.size(), &given);
    }
    /// Sends a text, for publishers of bytes.
    template <class B = T, class = std::enable_if_t<std::is_same_v<B, Bytes>>>
    void send(std::string_view text) {
        send(text, std::nothrow).value();
    }
    template <class B = T, class = std::enable_if_t<std::is_same_v<B, Bytes>>>
    Result<void> send(std::string_view text, std::nothrow_t) {
        return send_bytes(bytes_of(text));
    }

    /// Lends memory for a message of `len` bytes, for publishers of bytes.
    Loan<T> loan(std::size_t len) { return loan(len, std::nothrow).value(); }
    Result<Loan<T>> loan(std::size_t len, std::nothrow_t) {
        static_assert(std::is_same_v<T, Bytes>,
                      "loan(len) is for publishers of bytes; loan() for plain messages");
        return lend<Loan<T>>(len);
    }
    /// Lends memory for an image, a point cloud or a tensor with this header: see rnet/msgs/plain.hpp.
    template <class M = T>
    DataLoan<M> loan_with(const typename M::Header& header) {
        return loan_with<M>(header, std::nothrow).value();
    }
    template <class M = T>
    Result<DataLoan<M>> loan_with(const typename M::Header& header, std::nothrow_t) {
        return lend<DataLoan<M>>(header.data_offset + header.data_len, header);
    }
    /// Lends memory for a plain message.
    Loan<T> loan() { return loan(std::nothrow).value(); }
    Result<Loan<T>> loan(std::nothrow_t) {
        static_assert(detail::has_find<T>, "loan() is for messages that RNET_PLAIN declares");
        return lend<Loan<T>>(sizeof(T));
    }

    /// Waits until at least `count` subscribers are matched: messages sent after that reach them.
    void wait_for_subscribers(std::size_t count = 1) { wait_for_subscribers(count, std::nothrow).value(); }
    Result<void> wait_for_subscribers(std::size_t count, std::nothrow_t) { return wait(count, RNET_FOREVER); }
    /// As wait_for_subscribers(), for at most `limit`; then fails with Code::timeout.
    void wait_for_subscribers_for(std::size_t count, detail::TimeLimit limit) {
        wait(count, limit.ns()).value();
    }
    Result<void> wait_for_subscribers_for(std::size_t count, detail::TimeLimit limit, std::nothrow_t) {
        return wait(count, limit.ns());
    }

    /// Number of subscribers that are served now.
    std::size_t subscriber_count() const { return subscriber_count(std::nothrow).value(); }
    Result<std::size_t> subscriber_count(std::nothrow_t) const {
        return detail::result_of<std::size_t>(rnet_publisher_subscriber_count, handle());
    }

    /// Shows that a publisher with a liveliness lease is alive.
    void assert_alive() { assert_alive(std::nothrow).value(); }
    Result<void> assert_alive(std::nothrow_t) {
        return detail::success_of(rnet_publisher_assert_alive, handle());
    }

    /// Replaces the last will, which PublisherOptions::last_will has set.
    void set_last_will(const T& message) { set_last_will(message, std::nothrow).value(); }
    Result<void> set_last_will(const T& message, std::nothrow_t) {
        detail::EncodeBuffer<T> scratch;
        const Bytes bytes = Message<T>::encode(message, scratch.buffer());
        static const std::uint8_t empty = 0;
        return set_will(bytes.data() ? bytes.data() : &empty, bytes.size());
    }
    /// Removes the last will; set_last_will() may set another.
    void clear_last_will() { clear_last_will(std::nothrow).value(); }
    Result<void> clear_last_will(std::nothrow_t) { return set_will(nullptr, 0); }

    /// Closes the publisher: waits for at most `limit` until its reliable subscribers have read its large
    /// messages. Fails with Code::timeout if some are unread. The destructor closes it without waiting.
    void close() { close(std::chrono::nanoseconds(0)); }
    void close(detail::TimeLimit limit) { close(limit, std::nothrow).value(); }
    Result<void> close(detail::TimeLimit limit, std::nothrow_t) {
        return detail::success_of(rnet_publisher_close, handle(), limit.ns());
    }

    rnet_publisher* handle() const noexcept { return handle_.get(); }

private:
    Result<void> send_bytes(Bytes bytes) {
        return detail::success_of(rnet_publisher_send, handle(), bytes.data(), bytes.size());
    }
    template <class L, class... Header>
    Result<L> lend(std::size_t len, const Header&... header) {
        rnet_loan* loan = nullptr;
        rnet_error* error = nullptr;
        const rnet_code code = rnet_publisher_loan(handle(), len, &loan, &error);
        if (code != RNET_OK) return Error(static_cast<Code>(code), error);
        return L(loan, header...);
    }
    Result<void> wait(std::size_t count, std::int64_t limit_ns) {
        return detail::success_of(rnet_publisher_wait_for_subscribers, handle(), count, limit_ns);
    }
    Result<void> set_will(const std::uint8_t* data, std::size_t len) {
        return detail::success_of(rnet_publisher_set_last_will, handle(), data, len);
    }

    detail::Handle<rnet_publisher, rnet_publisher_free> handle_;
};

}  // namespace rnet
