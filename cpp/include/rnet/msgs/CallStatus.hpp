// Written from rnet/msgs/CallStatus.proto by `cargo xtask cpp-messages --write`; do not edit.
#pragma once

#include <rnet/detail/wire.hpp>

namespace rnet::msgs { inline namespace structs {

/// How a call ended.
enum class CallStatus_State : std::int32_t {
    /// Not said.
    unspecified = 0,
    /// All replies of a stream were sent.
    done = 1,
    /// The handler failed or panicked.
    failed = 2,
    /// The call was cancelled, and its handler has returned or was never started.
    cancelled = 3,
    /// The backlog of the server is full: the call was not started.
    refused = 4,
};

/// Why a call was cancelled.
enum class CallStatus_Reason : std::int32_t {
    /// Not said.
    unspecified = 0,
    /// Its caller has cancelled it.
    caller = 1,
    /// The node of its caller is gone.
    caller_gone = 2,
    /// Its time is over.
    timed_out = 3,
    /// A newer goal replaced it.
    preempted = 4,
    /// Its server closes.
    server_closing = 5,
    /// Another node cancelled all goals of the action.
    operator_ = 6,
};

/// How a call ended, if not with a single reply; the correlation of the message identifies the call.
struct CallStatus {
    using State = CallStatus_State;
    using Reason = CallStatus_Reason;

    /// How it ended.
    State state{};
    /// Replies that were sent. Unit: 1
    std::uint64_t replies = 0;
    /// The type of the handler's error, `panic` for one; empty if it did not fail.
    std::string code{};
    /// Text of the handler's error; empty if it did not fail.
    std::string text{};
    /// Size of the server's backlog, if it refuses. Unit: 1
    std::uint32_t backlog = 0;
    /// Why it was cancelled, if it was.
    Reason reason{};
    /// Messages of feedback that were sent. Unit: 1
    std::uint64_t feedback = 0;
    /// Messages of feedback that were not sent because the caller did not read. Unit: 1
    std::uint64_t feedback_dropped = 0;
    /// The node whose goal runs, if an action with one goal at a time refuses.
    std::string running{};
};

}}  // namespace rnet::msgs

namespace rnet::detail {

template <>
struct Fields<msgs::CallStatus> {
    static constexpr const char* name = "rnet.msgs.CallStatus";
    template <class V>
    static void visit(V&& visit) {
        using M = msgs::CallStatus;
        visit(Field<9>(), &M::running);
        visit(Field<8>(), &M::feedback_dropped);
        visit(Field<7>(), &M::feedback);
        visit(Field<6>(), &M::reason);
        visit(Field<5>(), &M::backlog);
        visit(Field<4>(), &M::text);
        visit(Field<3>(), &M::code);
        visit(Field<2>(), &M::replies);
        visit(Field<1>(), &M::state);
    }
};

}  // namespace rnet::detail
