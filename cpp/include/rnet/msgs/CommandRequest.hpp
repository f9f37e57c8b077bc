// Written from rnet/msgs/CommandRequest.proto by `cargo xtask cpp-messages --write`; do not edit.
#pragma once

#include <rnet/detail/wire.hpp>

namespace rnet::msgs { inline namespace structs {

/// What is asked.
enum class CommandRequest_Action : std::int32_t {
    /// Not said.
    unspecified = 0,
    /// Take authority; granted if no driver has it or the holder's priority is lower.
    take = 1,
    /// Renew the lease.
    renew = 2,
    /// Release authority.
    release = 3,
};

/// Request of a driver to the receiver of a command: to take, renew or release authority.
struct CommandRequest {
    using Action = CommandRequest_Action;

    /// What is asked.
    Action action{};
    /// Drivers of a higher priority take precedence. Unit: 1
    std::int32_t priority = 0;
    /// How long authority lasts after the last command or renewal. Unit: ns
    std::uint64_t lease = 0;
    /// The number of the authority to renew or release. Unit: 1
    std::uint64_t number = 0;
    /// Whether authority lasts until the lease expires even if the driver's process or host is gone first.
    bool outlasts_driver = false;
};

}}  // namespace rnet::msgs

namespace rnet::detail {

template <>
struct Fields<msgs::CommandRequest> {
    static constexpr const char* name = "rnet.msgs.CommandRequest";
    template <class V>
    static void visit(V&& visit) {
        using M = msgs::CommandRequest;
        visit(Field<5>(), &M::outlasts_driver);
        visit(Field<4>(), &M::number);
        visit(Field<3>(), &M::lease);
        visit(Field<2, Wire::zigzag>(), &M::priority);
        visit(Field<1>(), &M::action);
    }
};

}  // namespace rnet::detail
