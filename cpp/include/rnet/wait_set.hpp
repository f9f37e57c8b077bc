// Waiting in your own loop: for several objects at once, or with the descriptors of an event loop.
//
//     rnet::WaitSet waits(node);
//     waits.attach(stop);
//     waits.attach(rate);
//     for (;;) {
//         waits.wait();
//         if (waits.is_ready(stop)) halt(stop.try_recv());
//         if (waits.is_ready(rate) && rate.try_tick()) step();
//     }
#pragma once

#include <rnet/detail/callback.hpp>
#include <rnet/error.hpp>

#include <chrono>
#include <cstddef>

namespace rnet {

namespace detail {
inline auto attach_to_set(rnet_subscriber*) { return rnet_wait_set_attach_subscriber; }
inline auto attach_to_set(rnet_watch*) { return rnet_wait_set_attach_watch; }
inline auto attach_to_set(rnet_rate*) { return rnet_wait_set_attach_rate; }
}  // namespace detail

/// Waits until one of several subscribers, watches and rates of a node is ready. One thread at a time
/// waits; any thread may attach, detach and interrupt, also during a wait. Receive from the objects as usual.
class WaitSet {
public:
    template <class N, class = decltype(std::declval<const N&>().handle())>
    explicit WaitSet(const N& node) : WaitSet(create(node, std::nothrow).value()) {}

    template <class N>
    static Result<WaitSet> create(const N& node, std::nothrow_t) {
        WaitSet set;
        rnet_wait_set* made = nullptr;
        rnet_error* error = nullptr;
        rnet_code code = rnet_wait_set_new(node.handle(), &made, &error);
        if (code != RNET_OK) return Error(static_cast<Code>(code), error);
        set.handle_.reset(made);
        return set;
    }

    /// Adds an object of the same node, until it is detached or destroyed.
    template <class T>
    void attach(const T& object) {
        attach(object, std::nothrow).value();
    }
    template <class T>
    Result<void> attach(const T& object, std::nothrow_t) {
        rnet_error* error = nullptr;
        const auto attach = detail::attach_to_set(object.handle());
        return detail::check(attach(handle_.get(), object.handle(), &error), error);
    }
    /// Removes an object, which is unchanged.
    template <class T>
    void detach(const T& object) {
        detach(object, std::nothrow).value();
    }
    template <class T>
    Result<void> detach(const T& object, std::nothrow_t) {
        rnet_error* error = nullptr;
        return detail::check(rnet_wait_set_detach(handle_.get(), object.handle(), &error), error);
    }

    /// Waits until an object may have something, and returns the number of such objects. An object that was
    /// not read is ready again at the next wait. A closed object is ready until it is detached.
    std::size_t wait() { return wait(std::nothrow).value(); }
    Result<std::size_t> wait(std::nothrow_t) { return wait_ns(RNET_FOREVER); }
    /// As wait(), for at most `limit`; then it returns 0.
    template <class Rep, class Period>
    std::size_t wait_for(std::chrono::duration<Rep, Period> limit) {
        return wait_for(limit, std::nothrow).value();
    }
    template <class Rep, class Period>
    Result<std::size_t> wait_for(std::chrono::duration<Rep, Period> limit, std::nothrow_t) {
        return wait_ns(detail::ns(limit));
    }
    /// Whether the last wait has found an object ready.
    template <class T>
    bool is_ready(const T& object) const noexcept {
        const void* searched = object.handle();
        for (std::size_t at = 0;; ++at) {
            const void* found = rnet_wait_set_ready(handle_.get(), at);
            if (!found || found == searched) return found;
        }
    }

    /// Ends the wait in progress, or the next one, with Code::interrupted.
    void interrupt() const noexcept { rnet_wait_set_interrupt(handle_.get()); }
    rnet_wait_set* handle() const noexcept { return handle_.get(); }

private:
    WaitSet() = default;

    Result<std::size_t> wait_ns(std::int64_t timeout_ns) {
        std::size_t count = 0;
        rnet_error* error = nullptr;
        rnet_code code = rnet_wait_set_wait(handle_.get(), timeout_ns, &count, &error);
        if (code != RNET_OK) return Error(static_cast<Code>(code), error);
        return count;
    }

    detail::Handle<rnet_wait_set, rnet_wait_set_free> handle_;
};

/// A file descriptor that is readable when a subscriber may have a message: see rnet_subscriber_fd(). When it
/// is readable, receive until try_recv() gives nothing. Do not read or close it.
template <class S>
Result<int> fd(const S& subscriber, std::nothrow_t) {
    int descriptor = -1;
    rnet_error* error = nullptr;
    rnet_code code = rnet_subscriber_fd(subscriber.handle(), &descriptor, &error);
    if (code != RNET_OK) return Error(static_cast<Code>(code), error);
    return descriptor;
}
template <class S>
int fd(const S& subscriber) {
    return fd(subscriber, std::nothrow).value();
}

}  // namespace rnet
