// Times in messages: seconds and nanoseconds, with conversions from std::chrono.
#pragma once

#include <rnet/detail/wire.hpp>

#include <chrono>
#include <cstdint>
#include <optional>

namespace rnet::msgs {

namespace detail_time {

constexpr std::int64_t ns_per_s = 1'000'000'000;

template <class D>
constexpr std::int64_t count_ns(D duration) {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(duration).count();
}

/// `seconds` and `nanos` in ns, if they fit into 64 bits.
inline std::optional<std::int64_t> to_ns(std::int64_t seconds, std::int32_t nanos) {
    // The seconds of the lowest number of ns are below it; counted from the next one, they are not.
    if (seconds < 0 && nanos > 0) {
        ++seconds;
        nanos = static_cast<std::int32_t>(nanos - ns_per_s);
    }
    std::int64_t ns = 0;
    if (__builtin_mul_overflow(seconds, ns_per_s, &ns) || __builtin_add_overflow(ns, nanos, &ns)) return {};
    return ns;
}

}  // namespace detail_time

/// UTC time, as google.protobuf.Timestamp. Times of std::chrono::system_clock convert to it:
///
///     scan.timestamp = std::chrono::system_clock::now();
struct Timestamp {
    /// Since 1970-01-01 UTC. Unit: s
    std::int64_t seconds = 0;
    /// From 0 to 999999999, also before 1970. Unit: ns
    std::int32_t nanos = 0;

    Timestamp() = default;
    Timestamp(std::int64_t seconds, std::int32_t nanos) : seconds(seconds), nanos(nanos) {}
    template <class D>
    Timestamp(std::chrono::time_point<std::chrono::system_clock, D> time)
        : Timestamp(from_ns(detail_time::count_ns(time.time_since_epoch()))) {}

    /// The current time. The clock can be set, and may jump.
    static Timestamp now() { return std::chrono::system_clock::now(); }
    /// A time in ns since 1970-01-01 UTC.
    static Timestamp from_ns(std::int64_t ns) {
        std::int64_t seconds = ns / detail_time::ns_per_s, nanos = ns % detail_time::ns_per_s;
        if (nanos < 0) {
            --seconds;
            nanos += detail_time::ns_per_s;
        }
        return {seconds, static_cast<std::int32_t>(nanos)};
    }
    /// In ns since 1970-01-01 UTC; empty if it is outside 1677 to 2262.
    std::optional<std::int64_t> to_ns() const { return detail_time::to_ns(seconds, nanos); }
};

/// A length of time, as google.protobuf.Duration: both its numbers have the same sign. Durations of
/// std::chrono convert to it.
struct Duration {
    /// Unit: s
    std::int64_t seconds = 0;
    /// Unit: ns
    std::int32_t nanos = 0;

    Duration() = default;
    Duration(std::int64_t seconds, std::int32_t nanos) : seconds(seconds), nanos(nanos) {}
    template <class Rep, class Period>
    Duration(std::chrono::duration<Rep, Period> time) : Duration(from_ns(detail_time::count_ns(time))) {}

    static Duration from_ns(std::int64_t ns) {
        return {ns / detail_time::ns_per_s, static_cast<std::int32_t>(ns % detail_time::ns_per_s)};
    }
    /// In ns; empty if it is longer than 292 years.
    std::optional<std::int64_t> to_ns() const { return detail_time::to_ns(seconds, nanos); }
};

}  // namespace rnet::msgs

namespace rnet::detail {

template <>
struct Fields<msgs::Timestamp> {
    static constexpr const char* name = "google.protobuf.Timestamp";
    template <class V>
    static void visit(V&& visit) {
        visit(Field<2>(), &msgs::Timestamp::nanos);
        visit(Field<1>(), &msgs::Timestamp::seconds);
    }
};

template <>
struct Fields<msgs::Duration> {
    static constexpr const char* name = "google.protobuf.Duration";
    template <class V>
    static void visit(V&& visit) {
        visit(Field<2>(), &msgs::Duration::nanos);
        visit(Field<1>(), &msgs::Duration::seconds);
    }
};

}  // namespace rnet::detail
