// What services, actions, work queues and commands share: typed messages, and handlers.
#pragma once

#include <rnet/detail/callback.hpp>
#include <rnet/message.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#if defined(__GXX_RTTI)
#include <cxxabi.h>
#include <typeinfo>
#endif

namespace rnet {
namespace detail {

template <class T>
constexpr bool is_bytes = std::is_same_v<T, Bytes>;

template <class T>
constexpr bool is_in_place() {
    if constexpr (is_bytes<T>) {
        return false;
    } else {
        return Message<T>::in_place;
    }
}

/// The type of messages.
template <class T>
Result<Type> type_of() {
    if constexpr (is_bytes<T>) {
        return Type();
    } else {
        static_assert(!has_data<T>, "rnet: images, point clouds and tensors are messages of topics");
        return Message<T>::type();
    }
}

/// The bytes of a message: its own memory, or the buffer. For raw bytes, `message` is a container of bytes or
/// a text.
template <class T, class M>
Bytes encoded(const M& message, std::vector<std::uint8_t>& buffer) {
    if constexpr (!is_bytes<T>) {
        static_assert(std::is_base_of_v<T, M>,
                      "rnet: convert the message to its type first: its bytes may be its own");
        return Message<T>::encode(message, buffer);
    } else if constexpr (std::is_convertible_v<const M&, std::string_view>) {
        return bytes_of(message);
    } else {
        return Bytes(message);
    }
}

/// A message in bytes that it does not own: decoded, or a view of them.
template <class T, class Enable = void>
class Decoded {
public:
    Result<void> read(Bytes bytes) {
        if constexpr (is_bytes<T>) {
            value_ = bytes;
            return {};
        } else {
            return Message<T>::decode(bytes, value_);
        }
    }
    const T& get() const { return value_; }
    T take() { return std::move(value_); }

private:
    T value_{};
};

template <class T>
class Decoded<T, std::enable_if_t<is_in_place<T>()>> {
public:
    Result<void> read(Bytes bytes) {
        if (bytes.size() < sizeof(T)) return Error(Code::malformed);
        bytes_ = bytes;
        return {};
    }
    const T& get() const { return Message<T>::view(bytes_); }
    T take() const { return get(); }

private:
    Bytes bytes_;
};

inline Bytes view_of(rnet_bytes bytes) noexcept { return {bytes.data, bytes.len}; }

#if RNET_HAS_EXCEPTIONS
/// The class of an exception, for people.
inline std::string kind_of([[maybe_unused]] const std::exception& error) {
#if defined(__GXX_RTTI)
    int status = 0;
    const char* name = typeid(error).name();
    std::unique_ptr<char, void (*)(void*)> readable(abi::__cxa_demangle(name, nullptr, nullptr, &status),
                                                    std::free);
    return readable ? readable.get() : name;
#else
    return "exception";
#endif
}
#endif

/// Runs the handler of a request. An exception fails the call: its caller gets the class and the text.
template <class F>
void run_handler([[maybe_unused]] rnet_request* request, F&& run) noexcept {
    from_library();
#if RNET_HAS_EXCEPTIONS
    try {
        run();
    } catch (const std::exception& error) {
        rnet_request_fail(request, kind_of(error).c_str(), error.what(), nullptr);
    } catch (...) {
        rnet_request_fail(request, "exception", "an exception that is not a std::exception", nullptr);
    }
#else
    run();
#endif
    to_library();
}

/// Runs `use` with the message of a request, which fails if it cannot be decoded.
template <class Q, class F>
void with_request(rnet_request* request, F&& use) noexcept {
    run_handler(request, [&] {
        Decoded<Q> message;
        if (auto read = message.read(view_of(rnet_request_data(request))); !read) {
            rnet_request_fail(request, "malformed", read.error().what(), nullptr);
            return;
        }
        use(message.get());
    });
}

/// Calls a handler with its context, if it takes one.
template <class F, class Q, class Context>
decltype(auto) call_handler(F& handler, const Q& message, Context& context) {
    if constexpr (std::is_invocable_v<F&, const Q&, Context&>) {
        return handler(message, context);
    } else {
        return handler(message);
    }
}

/// Answers a request with what its handler returns: a message, or nothing, which is a reply of no bytes.
template <class R, class F>
void answer(rnet_request* request, F&& handle) {
    std::vector<std::uint8_t> buffer;
    if constexpr (std::is_void_v<decltype(handle())>) {
        static_assert(is_bytes<R>, "the handler must return the reply");
        handle();
        rnet_request_answer(request, nullptr, 0, nullptr);
    } else {
        const auto& reply = handle();
        Bytes bytes = encoded<R>(reply, buffer);
        rnet_request_answer(request, bytes.data(), bytes.size(), nullptr);
    }
}

}  // namespace detail

/// Why a call, a goal or a job was cancelled.
enum class CancelReason : int {
    none = RNET_CANCEL_NONE,
    caller = RNET_CANCEL_CALLER,
    caller_gone = RNET_CANCEL_CALLER_GONE,
    timed_out = RNET_CANCEL_TIMED_OUT,
    preempted = RNET_CANCEL_PREEMPTED,
    server_closing = RNET_CANCEL_SERVER_CLOSING,
    operator_request = RNET_CANCEL_OPERATOR,
    unknown = RNET_CANCEL_UNKNOWN,
};

/// The state of a call, a goal or a job, for its handler while it runs, on its thread.
class CallContext {
public:
    explicit CallContext(rnet_request* request) noexcept : request_(request) {}
    CallContext(const CallContext&) = delete;
    CallContext& operator=(const CallContext&) = delete;

    /// The node that sent it.
    std::string_view caller() const noexcept { return rnet_request_caller(request_); }
    /// Whether the answer is no longer wanted: the handler should return.
    bool is_cancelled() const noexcept { return rnet_request_is_cancelled(request_); }
    CancelReason cancel_reason() const noexcept {
        return static_cast<CancelReason>(rnet_request_cancel_reason(request_));
    }
    /// Whether it is a job that another worker had: it may be done.
    bool redelivered() const noexcept { return rnet_request_redelivered(request_); }
    rnet_request* handle() const noexcept { return request_; }

private:
    rnet_request* request_;
};

/// A message of a call, which owns its memory.
template <class T>
class Received {
public:
    /// Takes a sample of the C API.
    static Result<Received> of(rnet_sample* sample) {
        Received received(sample);
        if (auto read = received.message_.read(received.bytes()); !read) return read.error();
        return received;
    }

    const T& operator*() const& { return message_.get(); }
    /// The message, moved out.
    template <class M = T, std::enable_if_t<!detail::is_bytes<M>, int> = 0>
    M operator*() && {
        return message_.take();
    }
    template <class M = T, std::enable_if_t<detail::is_bytes<M>, int> = 0>
    M operator*() && = delete;  // The bytes would end with this object: keep it in a variable.
    const T* operator->() const { return &message_.get(); }
    /// The bytes as received.
    Bytes bytes() && = delete;  // As above.
    Bytes bytes() const& noexcept { return detail::view_of(rnet_sample_data(sample_.get())); }
    /// Its bytes as text.
    std::string_view text() const& noexcept { return text_of(bytes()); }
    std::string text() && { return std::string(text()); }
    rnet_sample* handle() const noexcept { return sample_.get(); }

private:
    explicit Received(rnet_sample* sample) : sample_(sample) {}

    detail::Handle<rnet_sample, rnet_sample_free> sample_;
    detail::Decoded<T> message_;
};

namespace detail {

/// A message that a function of the C API receives.
template <class T, class F, class... Args>
Result<Received<T>> received_by(F&& function, Args&&... args) {
    auto sample = result_of<rnet_sample*>(function, args...);
    if (!sample) return sample.error();
    return Received<T>::of(*sample);
}

/// As received_by(), for one that may be null: the messages have ended.
template <class T, class F, class... Args>
Result<std::optional<Received<T>>> received_or_end(F&& function, Args&&... args) {
    auto sample = result_of<rnet_sample*>(function, args...);
    if (!sample) return sample.error();
    if (!*sample) return std::optional<Received<T>>();
    auto one = Received<T>::of(*sample);
    if (!one) return one.error();
    return std::optional<Received<T>>(*std::move(one));
}

/// A message of type T in bytes, encoded for a call of the C API.
template <class T>
class Encoded {
public:
    template <class M>
    explicit Encoded(const M& message) : bytes_(encoded<T>(message, buffer_)) {}
    Encoded(const Encoded&) = delete;
    Encoded& operator=(const Encoded&) = delete;
    const std::uint8_t* data() const noexcept { return bytes_.data(); }
    std::size_t size() const noexcept { return bytes_.size(); }

private:
    std::vector<std::uint8_t> buffer_;
    Bytes bytes_;
};

/// Sends a reply, or feedback.
template <class T, class M>
Result<void> send_to_caller(rnet_request* request, const M& message, std::vector<std::uint8_t>& buffer) {
    const Bytes bytes = encoded<T>(message, buffer);
    return success_of(rnet_request_send, request, bytes.data(), bytes.size());
}

}  // namespace detail
}  // namespace rnet
