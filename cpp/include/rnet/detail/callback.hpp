// Functions of C++ as callbacks of the C API.
#pragma once

#include <rnet/detail/tsan.hpp>
#include <rnet/error.hpp>

#include <chrono>
#include <exception>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

namespace rnet::detail {

/// Runs a function of the user. An exception ends here: it is counted and logged as an error of the callback.
template <class F>
void guarded(F&& run) noexcept {
    from_library();
#if RNET_HAS_EXCEPTIONS
    try {
        run();
    } catch (const std::exception& error) {
        rnet_report_callback_error(error.what());
    } catch (...) {
        rnet_report_callback_error("an exception that is not a std::exception");
    }
#else
    run();
#endif
    to_library();
}

/// A function object as the context of a callback of the C API.
template <class F>
void* context_of(F&& function) {
    void* context = new std::decay_t<F>(std::forward<F>(function));
    to_library();
    return context;
}

/// Frees what context_of() has made.
template <class F>
void free_context(void* context) {
    from_library();
    delete static_cast<std::decay_t<F>*>(context);
}

/// A duration as the C API takes it. One of more than 292 years has no limit.
template <class Rep, class Period>
std::int64_t ns(std::chrono::duration<Rep, Period> duration) {
    const bool is_limited = std::chrono::duration<double, std::nano>(duration).count() < 9.2e18;
    return is_limited ? std::chrono::duration_cast<std::chrono::nanoseconds>(duration).count() : RNET_FOREVER;
}

/// The time limit of a wait: any duration of std::chrono.
class TimeLimit {
public:
    template <class Rep, class Period>
    TimeLimit(std::chrono::duration<Rep, Period> limit)
        : ns_(limit > limit.zero() ? detail::ns(limit) : 0) {}  // One that is over: 0.
    std::int64_t ns() const noexcept { return ns_; }
    /// As ns(), for a function of the C API for which 0 is not a wait: here it is a wait that is over.
    std::int64_t wait_ns() const noexcept { return ns_ == 0 ? 1 : ns_; }

private:
    std::int64_t ns_;
};

/// A duration of an option, for the C API. There, 0 means the default; a given 0 is the shortest duration.
inline std::int64_t option_ns(const std::optional<std::chrono::nanoseconds>& given) {
    if (!given) return 0;
    return given->count() == 0 ? 1 : given->count();
}

}  // namespace rnet::detail
