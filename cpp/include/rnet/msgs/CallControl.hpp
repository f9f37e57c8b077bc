// Written from rnet/msgs/CallControl.proto by `cargo xtask cpp-messages --write`; do not edit.
#pragma once

#include <rnet/detail/wire.hpp>

namespace rnet::msgs { inline namespace structs {

/// What is to be done.
enum class CallControl_Action : std::int32_t {
    /// Not said.
    unspecified = 0,
    /// The caller no longer needs the answer.
    cancel = 1,
    /// The call timed out: the caller no longer needs the answer.
    timed_out = 2,
    /// Cancel a goal; its caller waits until it has ended.
    stop = 3,
    /// Cancel the goals of all callers.
    stop_all = 4,
};

/// A caller's request to the server of a running call; the correlation of the message identifies the call.
struct CallControl {
    using Action = CallControl_Action;

    /// What is to be done.
    Action action{};
};

}}  // namespace rnet::msgs

namespace rnet::detail {

template <>
struct Fields<msgs::CallControl> {
    static constexpr const char* name = "rnet.msgs.CallControl";
    template <class V>
    static void visit(V&& visit) {
        using M = msgs::CallControl;
        visit(Field<1>(), &M::action);
    }
};

}  // namespace rnet::detail
