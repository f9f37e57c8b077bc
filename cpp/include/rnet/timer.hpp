// Timers, rates and clocks.
//
//     rnet::Timer timer(node, 10ms, [&](const rnet::Tick&) { publisher.send(compute()); });
//
//     for (rnet::Rate rate(node, 100.0);;) {
//         step();
//         rate.sleep();
//     }
#pragma once

#include <rnet/detail/callback.hpp>
#include <rnet/error.hpp>

#include <chrono>
#include <cstdint>
#include <optional>

namespace rnet {

/// One tick of a timer or rate.
struct Tick {
    /// Tick 1 is due one period after the start. Skipped ticks count.
    std::uint64_t number = 0;
    /// When it was due, in ns of the node's time.
    std::uint64_t due_ns = 0;
    /// How late it was taken.
    std::chrono::nanoseconds late{0};
    /// Number of ticks skipped since the last one.
    std::uint64_t missed = 0;

    Tick() = default;
    explicit Tick(const rnet_tick& tick)
        : number(tick.number), due_ns(tick.due_ns), late(tick.late_ns), missed(tick.missed) {}
};

struct TimerOptions {
    /// Ticks once, after one period.
    bool once = false;
    /// Runs on the thread of the urgent lane.
    bool urgent = false;
};

/// Calls `callback(const Tick&)` every `period` of the node's time, until it is destroyed. Its callbacks and
/// those of the topics of its lane never overlap. Destroying it waits for a running call, except within a
/// callback.
class Timer {
public:
    Timer() = default;
    /// Takes over an object of the C API.
    explicit Timer(rnet_timer* handle) noexcept : handle_(handle) {}
    template <class N, class Rep, class Period, class F>
    Timer(const N& node, std::chrono::duration<Rep, Period> period, F&& callback, TimerOptions options = {})
        : Timer(start(node, period, std::forward<F>(callback), options, std::nothrow).value()) {}

    template <class N, class Rep, class Period, class F>
    static Result<Timer> start(const N& node, std::chrono::duration<Rep, Period> period, F&& callback,
                               TimerOptions options, std::nothrow_t) {
        auto call = [](const rnet_tick* given_tick, void* context) {
            const Tick tick(*given_tick);
            detail::guarded([&] { (*static_cast<std::decay_t<F>*>(context))(tick); });
        };
        auto given = detail::initialised<rnet_timer_options>();
        given.once = options.once;
        given.urgent = options.urgent;
        return detail::made_by<Timer>(rnet_timer_new, node.handle(), detail::ns(period), &given, call,
                                      detail::context_of(std::forward<F>(callback)),
                                      detail::free_context<F>);
    }

    /// Ends it now.
    void cancel() noexcept { handle_.reset(); }
    /// Number of ticks for which the callback was called; 0 once it has ended.
    std::uint64_t ticks() const noexcept { return rnet_timer_ticks(handle_.get()); }
    /// Number of ticks skipped because the next one was due; 0 once it has ended.
    std::uint64_t missed() const noexcept { return rnet_timer_missed(handle_.get()); }
    rnet_timer* handle() const noexcept { return handle_.get(); }

private:
    detail::Handle<rnet_timer, rnet_timer_free> handle_;
};

/// Keeps a loop at a rate, on the thread that runs it. One thread at a time may use it.
class Rate {
public:
    /// Takes over an object of the C API.
    explicit Rate(rnet_rate* handle) noexcept : handle_(handle) {}
    /// `hz` ticks per second of the host's time.
    explicit Rate(double hz) : Rate(start(hz, std::nothrow).value()) {}
    /// `hz` ticks per second of the node's time, which may be simulated.
    template <class N>
    Rate(const N& node, double hz) : Rate(start(node, hz, std::nothrow).value()) {}

    static Result<Rate> start(double hz, std::nothrow_t) { return make(nullptr, hz); }
    template <class N>
    static Result<Rate> start(const N& node, double hz, std::nothrow_t) {
        return make(node.handle(), hz);
    }

    /// Sleeps until the next tick is due. If it already is, this returns at once and counts an overrun;
    /// further ticks that have passed are skipped.
    Tick sleep() { return sleep(std::nothrow).value(); }
    Result<Tick> sleep(std::nothrow_t) { return take(RNET_FOREVER); }
    /// As sleep(), for at most `limit` of the host's time; then it fails with Code::timeout.
    Tick sleep_for(detail::TimeLimit limit) { return sleep_for(limit, std::nothrow).value(); }
    Result<Tick> sleep_for(detail::TimeLimit limit, std::nothrow_t) { return take(limit.wait_ns()); }
    /// The tick that is due, if any.
    std::optional<Tick> try_tick() { return try_tick(std::nothrow).value(); }
    Result<std::optional<Tick>> try_tick(std::nothrow_t) {
        auto tick = take(0);
        if (!tick) return tick.error();
        return tick->number == 0 ? std::optional<Tick>() : std::optional<Tick>(*tick);
    }

    /// Number of sleeps that started after their tick was due.
    std::uint64_t overruns() const noexcept { return rnet_rate_overruns(handle_.get()); }
    /// Number of skipped ticks.
    std::uint64_t missed() const noexcept { return rnet_rate_missed(handle_.get()); }
    rnet_rate* handle() const noexcept { return handle_.get(); }

private:
    static Result<Rate> make(const rnet_node* node, double hz) {
        return detail::made_by<Rate>(rnet_rate_new, node, hz);
    }
    Result<Tick> take(std::int64_t timeout_ns) {
        auto tick = detail::filled_by<rnet_tick>(rnet_rate_sleep, handle(), timeout_ns);
        if (!tick) return tick.error();
        return Tick(*tick);
    }

    detail::Handle<rnet_rate, rnet_rate_free> handle_;
};

/// The offset of the wall clock: add it to rnet_now_ns() for ns since 1970 UTC.
struct WallOffset {
    std::chrono::nanoseconds offset;
    /// In both directions.
    std::chrono::nanoseconds uncertainty;
};

inline WallOffset wall_offset() noexcept {
    std::int64_t offset_ns = 0;
    std::uint64_t uncertainty_ns = 0;
    rnet_wall_offset(&offset_ns, &uncertainty_ns);
    return {std::chrono::nanoseconds(offset_ns), std::chrono::nanoseconds(uncertainty_ns)};
}

}  // namespace rnet
