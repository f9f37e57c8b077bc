// The state of a host that does not answer.
#include "state_check.hpp"

#include <rnet/remote_state.hpp>
#include <rnet/state.hpp>

#include <future>

using namespace std::chrono_literals;
using check::Domain;
using rnet::Code;
using rnet::PutOptions;

TEST("an unknown host does not answer") {
    Domain domain;
    const auto remote = rnet::RemoteState::open(domain.node, "nowhere", 50ms);
    CHECK_CODE(home_away, remote.get<int>("/k"));
    CHECK_CODE(home_away, remote.set("/k", 1));
    CHECK_CODE(home_away, remote.erase("/k"));
    CHECK_CODE(home_away, remote.list());
    CHECK_CODE(home_away, remote.params());
    CHECK_CODE(timeout, remote.mirror("/arm"));
    CHECK_CODE(bad_name, rnet::RemoteState::open(domain.node, ""));
    PutOptions options;
    options.last_will_delete = true;
    CHECK_CODE(invalid_argument, remote.set("/k", 1, options));
    // Closing the node ends a request.
    const auto slow = rnet::RemoteState::open(domain.node, "nowhere", 1h);
    std::future<Code> asked = std::async(std::launch::async,
        [&] { return check::code_of([&] { slow.get("/k"); }); });
    domain.node.close();
    CHECK(asked.wait_for(10s) == std::future_status::ready);
    const Code code = asked.get();
    CHECK(code == Code::closed || code == Code::home_away);
}

RNET_TEST_MAIN()
