// Receiving in coroutines of C++20, on a small event loop.
//
//     rnet::Task show(rnet::Subscriber<>& scans) {
//         for (;;) std::cout << (co_await scans.next()).text() << '\n';
//     }
//     rnet::EventLoop loop;
//     loop.spawn(show(front));
//     loop.spawn(show(rear));
//     loop.run();
//
// Programs with an event loop of their own (asio, Qt) use rnet_subscriber_fd() with that loop.
#pragma once

#include <rnet/subscriber.hpp>

#if __cplusplus >= 202002L && __has_include(<coroutine>)
#include <algorithm>
#include <cerrno>
#include <coroutine>
#include <exception>
#include <optional>
#include <poll.h>
#include <utility>
#include <vector>

namespace rnet {

class EventLoop;

namespace detail {

/// A coroutine that waits for a descriptor.
struct Waiter {
    int fd = -1;
    std::coroutine_handle<> coroutine;

    /// Tries what it waits for; whether it has a result.
    virtual bool is_ready() = 0;

protected:
    ~Waiter() = default;
};

}  // namespace detail

/// A coroutine that EventLoop::spawn() starts.
class [[nodiscard]] Task {
public:
    struct promise_type {
        EventLoop* loop = nullptr;
        std::exception_ptr error;

        Task get_return_object() { return Task(std::coroutine_handle<promise_type>::from_promise(*this)); }
        std::suspend_always initial_suspend() noexcept { return {}; }
        std::suspend_always final_suspend() noexcept { return {}; }
        void return_void() noexcept {}
        void unhandled_exception() noexcept { error = std::current_exception(); }
    };

    Task(Task&& other) noexcept : coroutine_(std::exchange(other.coroutine_, nullptr)) {}
    Task& operator=(Task&& other) noexcept {
        std::swap(coroutine_, other.coroutine_);
        return *this;
    }
    ~Task() {
        if (coroutine_) coroutine_.destroy();
    }

private:
    friend class EventLoop;
    explicit Task(std::coroutine_handle<promise_type> coroutine) noexcept : coroutine_(coroutine) {}
    std::coroutine_handle<promise_type> coroutine_;
};

/// Runs tasks on one thread, and sleeps while all of them wait.
class EventLoop {
public:
    /// Starts a task in run(). A task may spawn others.
    void spawn(Task task) {
        task.coroutine_.promise().loop = this;
        started_.push_back(std::move(task));
    }

    /// Runs until all tasks have returned. If one throws, the exception leaves this function, and the others continue
    /// in its next call. A task that waits for a subscriber that is closed gets Code::closed.
    void run() {
        while (!tasks_.empty() || !started_.empty()) {
            while (!started_.empty()) {
                tasks_.push_back(std::move(started_.back()));
                started_.pop_back();
                resume(tasks_.back().coroutine_);
            }
            if (!waiters_.empty()) wait();
        }
    }

private:
    template <class T>
    friend class Next;

    void wait() {
        std::vector<pollfd> polled;
        for (const detail::Waiter* waiter : waiters_) polled.push_back({waiter->fd, POLLIN, 0});
        if (::poll(polled.data(), polled.size(), -1) < 0) {
            if (errno == EINTR) return;
            detail::raise(Error(Code::io, "poll of the event loop failed"));
        }
        std::vector<detail::Waiter*> ready;
        for (std::size_t at = 0; at < polled.size(); ++at) {
            if (polled[at].revents != 0 && waiters_[at]->is_ready()) ready.push_back(waiters_[at]);
        }
        for (detail::Waiter* waiter : ready) waiters_.erase(std::find(waiters_.begin(), waiters_.end(), waiter));
        // A task that throws must not take the others' turn away.
        std::exception_ptr error;
        for (detail::Waiter* waiter : ready) {
            auto failed = step(std::coroutine_handle<Task::promise_type>::from_address(waiter->coroutine.address()));
            if (failed && !error) error = failed;
        }
        if (error) std::rethrow_exception(error);
    }
    void resume(std::coroutine_handle<Task::promise_type> coroutine) {
        if (auto error = step(coroutine)) std::rethrow_exception(error);
    }
    /// Runs a task until it waits or ends. Returns its exception.
    std::exception_ptr step(std::coroutine_handle<Task::promise_type> coroutine) {
        coroutine.resume();
        if (!coroutine.done()) return nullptr;
        auto error = coroutine.promise().error;
        tasks_.erase(std::find_if(tasks_.begin(), tasks_.end(),
                                  [&](const Task& task) { return task.coroutine_ == coroutine; }));
        return error;
    }

    std::vector<Task> tasks_;
    std::vector<Task> started_;
    std::vector<detail::Waiter*> waiters_;
};

/// The next message of a subscriber, to be awaited in a Task: a SampleView, or the Error that recv_view() throws.
template <class T>
class Next final : detail::Waiter {
public:
    explicit Next(Subscriber<T>& subscriber) : subscriber_(&subscriber) {}

    bool await_ready() { return is_ready(); }
    void await_suspend(std::coroutine_handle<Task::promise_type> task) {
        rnet_error* error = nullptr;
        detail::check(rnet_subscriber_fd(subscriber_->handle(), &this->fd, &error), error).value();
        this->coroutine = task;
        task.promise().loop->waiters_.push_back(this);
    }
    SampleView<T> await_resume() {
        auto taken = std::move(*result_).value();
        return std::move(*taken);
    }

private:
    friend class EventLoop;
    bool is_ready() override {
        result_.emplace(subscriber_->try_recv_view(std::nothrow));
        return !*result_ || **result_;
    }

    Subscriber<T>* subscriber_;
    std::optional<Result<std::optional<SampleView<T>>>> result_;
};

}  // namespace rnet
#endif
