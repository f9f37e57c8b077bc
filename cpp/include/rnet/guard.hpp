// A registered callback.
#pragma once

#include <rnet/error.hpp>

namespace rnet {

/// A callback that runs until this is destroyed. Then it does not run and is not called again, except if that
/// happens within a callback.
class [[nodiscard]] Guard {
public:
    /// Takes over an object of the C API.
    explicit Guard(rnet_guard* handle) noexcept : handle_(handle) {}

    /// Ends the callback.
    void close() noexcept { handle_.reset(); }
    /// Lets the callback run until its object is closed.
    void detach() noexcept { rnet_guard_detach(handle_.release()); }

    rnet_guard* handle() const noexcept { return handle_.get(); }

private:
    detail::Handle<rnet_guard, rnet_guard_free> handle_;
};

}  // namespace rnet
