// What objects that receive one item after the other have in common.
#pragma once

#include <rnet/detail/callback.hpp>

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <new>
#include <optional>
#include <utility>

namespace rnet::detail {

/// Receives items: `Derived::take(timeout_ns)` returns the next one, or none if the timeout is 0.
template <class Derived, class T>
class Receiver {
public:
    /// Waits for the next item.
    T recv() { return recv(std::nothrow).value(); }
    Result<T> recv(std::nothrow_t) { return wait(RNET_FOREVER); }
    /// As recv(), for at most `limit`; then fails with Code::timeout.
    T recv_for(TimeLimit limit) { return recv_for(limit, std::nothrow).value(); }
    Result<T> recv_for(TimeLimit limit, std::nothrow_t) { return wait(limit.wait_ns()); }
    /// The next item, if available.
    std::optional<T> try_recv() { return try_recv(std::nothrow).value(); }
    Result<std::optional<T>> try_recv(std::nothrow_t) { return self().take(0); }

    /// The end of the items: the object was closed.
    struct End {};
    /// Receives in a loop.
    class Iterator {
    public:
        using iterator_category = std::input_iterator_tag;
        using value_type = T;
        using difference_type = std::ptrdiff_t;
        using pointer = T*;
        using reference = T&;

        explicit Iterator(Receiver* receiver) : receiver_(receiver) { ++*this; }
        T& operator*() noexcept { return *current_; }
        T* operator->() noexcept { return &*current_; }
        Iterator& operator++() {
            current_.reset();  // A worker gets its next job when the previous one has ended.
            auto next = receiver_->recv(std::nothrow);
            if (next) {
                current_.emplace(std::move(*next));
            } else if (next.error().code() == Code::closed) {
                receiver_ = nullptr;
            } else {
                raise(next.error());
            }
            return *this;
        }
        void operator++(int) { ++*this; }
        friend bool operator==(const Iterator& at, End) noexcept { return at.receiver_ == nullptr; }
        friend bool operator!=(const Iterator& at, End) noexcept { return at.receiver_ != nullptr; }

    private:
        Receiver* receiver_;
        std::optional<T> current_;
    };
    /// Waits for the first item.
    Iterator begin() { return Iterator(this); }
    End end() const noexcept { return {}; }

private:
    friend Derived;
    Receiver() = default;

    Derived& self() { return static_cast<Derived&>(*this); }
    Result<T> wait(std::int64_t timeout_ns) {
        auto item = self().take(timeout_ns);
        if (!item) return item.error();
        return Result<T>(std::move(**item));
    }
};

}  // namespace rnet::detail
