// Inspection of a domain from outside, and messages as JSON.
#include "robot.hpp"

#include <rnet/inspect.hpp>

#include <algorithm>
#include <csignal>
#include <sys/wait.h>
#include <thread>

using robot::Leg;
using namespace std::chrono_literals;

namespace {

bool has(const std::vector<std::string>& all, const std::string& one) {
    return std::find(all.begin(), all.end(), one) != all.end();
}

/// The event of a node, or a failure after 10 s.
rnet::WatchedChange next_change(rnet::NodeWatcher& watcher, const std::string& node) {
    while (true) {
        const rnet::WatchedNode event = watcher.recv_for(10s);
        if (event.node == node) return event.change;
    }
}

/// How a wait without a limit ends, apart from the moments in which another thread uses the object.
template <class Waits>
rnet::Code end_of(Waits& waits) {
    rnet::Code code = rnet::Code::wrong_thread;
    while (code == rnet::Code::wrong_thread) code = waits.recv(std::nothrow).error().code();
    return code;
}

}  // namespace

TEST("a snapshot shows nodes and topics") {
    check::Domain place;
    auto domain = robot::open(place);
    CHECK(domain.id() == place.name && domain.snapshot().nodes().empty());
    auto node = place.node();
    auto text = node.publisher("/text");
    auto leg = node.publisher<Leg>("/leg");
    auto subscriber = node.subscriber("/text");
    subscriber.wait_for_publishers(1);
    text.send("hello");

    const auto snapshot = domain.snapshot();
    const auto nodes = snapshot.nodes();
    CHECK(nodes.size() == 1 && nodes[0].name == "/test" && nodes[0].language == "cpp");
    CHECK(nodes[0].pid == static_cast<unsigned>(getpid()) && nodes[0].uid == getuid());
    CHECK(nodes[0].version == rnet_version() && !nodes[0].is_remote);
    CHECK(has(nodes[0].publishes, "/text") && has(nodes[0].publishes, "/leg"));
    CHECK(has(nodes[0].subscribes, "/text"));
    const auto topics = snapshot.topics();
    auto topic = [&](const char* name) {
        return *std::find_if(topics.begin(), topics.end(), [&](auto& it) { return it.name == name; });
    };
    CHECK(topic("/text").publisher_count == 1 && topic("/text").subscriber_count == 1);
    CHECK(topic("/text").sent == 1 && topic("/text").bytes == 5 && topic("/text").type_name.empty());
    CHECK(topic("/leg").type_name == "Leg" && topic("/leg").subscriber_count == 0);
    CHECK(snapshot.services().empty() && snapshot.problems().empty() && snapshot.died().empty());
    CHECK(snapshot.type("/leg").name() == "Leg" && snapshot.type("/text").name().empty());
    CHECK(snapshot.type("/other", std::nothrow).error().code() == rnet::Code::bad_value);
    CHECK(snapshot.to_json().find("\"pid\":" + std::to_string(getpid())) != std::string::npos);

    rnet_node* in_c = nullptr;
    auto options = rnet::detail::initialised<rnet_node_options>();
    options.domain = place.name.c_str();
    options.dir = place.dir.c_str();
    CHECK(rnet_node_new("in_c", &options, &in_c, nullptr) == RNET_OK);
    const auto both = domain.snapshot().nodes();
    CHECK(both.size() == 2 && std::count_if(both.begin(), both.end(), [](auto& it) { return it.language == "c"; }) == 1);
    rnet_node_free(in_c);

    const auto one = domain.snapshot("/leg");
    CHECK(one.topics().size() == 1 && one.nodes()[0].publishes == std::vector<std::string>{"/leg"});
    CHECK(domain.snapshot("/leg//", std::nothrow).error().code() == rnet::Code::bad_name);
}

TEST("a watcher reports nodes that join, leave and die") {
    check::Domain place;
    auto domain = robot::open(place);
    auto watcher = domain.watch_nodes();
    CHECK(!watcher.try_recv());
    CHECK(watcher.recv_for(1ms, std::nothrow).error().code() == rnet::Code::timeout);
    {
        auto node = place.node();
        CHECK(next_change(watcher, "/test") == rnet::WatchedChange::joined);
    }
    CHECK(next_change(watcher, "/test") == rnet::WatchedChange::left);
    const pid_t child = fork();
    if (child == 0) {
        auto node = place.node("child");
        while (true) pause();
    }
    CHECK(next_change(watcher, "/child") == rnet::WatchedChange::joined);
    const auto snapshot = domain.snapshot();
    CHECK(snapshot.nodes().size() == 1 && snapshot.nodes()[0].pid == static_cast<unsigned>(child));
    kill(child, SIGKILL);
    CHECK(waitpid(child, nullptr, 0) == child);
    CHECK(next_change(watcher, "/child") == rnet::WatchedChange::died);
    const auto after = domain.snapshot();
    CHECK(after.nodes().empty() && has(after.died(), "/child"));
}

TEST("a follower receives from outside") {
    check::Domain place;
    auto domain = robot::open(place);
    // Before the topic exists.
    auto follower = domain.follow("/leg");
    CHECK(!follower.try_recv());
    CHECK(follower.type(std::nothrow).error().code() == rnet::Code::invalid_argument);
    CHECK(follower.recv_for(1ms, std::nothrow).error().code() == rnet::Code::timeout);
    auto node = place.node();
    auto leg = node.publisher<Leg>("/leg");
    rnet::PublisherOptions keeps;
    keeps.transient_local = 10;
    auto kept = node.publisher("/kept", keeps);
    for (int n = 0; n < 3; ++n) leg.send(Leg{0.5, n, 2});
    for (unsigned n = 0; n < 3; ++n) {
        const auto message = follower.recv_for(10s);
        CHECK(message.topic() == "/leg" && message.node() == "/test" && message.type_name() == "Leg");
        CHECK(message.seq() == n && message.missed() == 0 && message.sent_ns() <= rnet_now_ns());
        const std::string json = rnet::to_json(follower.type(), message.data());
        CHECK(json == R"({"force":0.5,"turns":)" + std::to_string(n) + R"(,"side":2})");
    }
    // It is not a node, and no subscriber.
    const auto snapshot = domain.snapshot("/leg");
    CHECK(snapshot.nodes().size() == 1 && snapshot.topics()[0].subscriber_count == 0);

    kept.send("old");
    auto late = domain.follow("/kept", true);
    CHECK(rnet::text_of(late.recv_for(10s).data()) == "old");
    auto without = domain.follow("/kept");
    CHECK(without.recv_for(10ms, std::nothrow).error().code() == rnet::Code::timeout);
    CHECK(domain.follow("/kept//", false, std::nothrow).error().code() == rnet::Code::bad_name);
}

TEST("closing ends the wait of another thread, which alone may use the object") {
    check::Domain place;
    auto node = place.node();
    auto domain = robot::open(place);
    auto follower = domain.follow("/text");
    std::thread waits([&] { CHECK(end_of(follower) == rnet::Code::closed); });
    while (follower.try_recv(std::nothrow)) std::this_thread::yield();
    CHECK(follower.try_recv(std::nothrow).error().code() == rnet::Code::wrong_thread);
    follower.close();
    waits.join();
    CHECK(follower.try_recv(std::nothrow).error().code() == rnet::Code::closed);

    auto watcher = domain.watch_nodes();
    CHECK(watcher.recv().node == "/test");
    std::thread watches([&] { CHECK(end_of(watcher) == rnet::Code::closed); });
    while (watcher.try_recv(std::nothrow)) std::this_thread::yield();
    watcher.close();
    watches.join();
}

TEST("a forked child leaves the objects of its parent alone") {
    check::Domain place;
    auto node = place.node();
    auto domain = robot::open(place);
    auto follower = domain.follow("/text");
    auto watcher = domain.watch_nodes();
    CHECK(!follower.try_recv() && domain.snapshot().nodes().size() == 1);
    const pid_t child = fork();
    if (child == 0) {
        const bool closed = domain.snapshot(std::nothrow).error().code() == rnet::Code::closed &&
                            follower.try_recv(std::nothrow).error().code() == rnet::Code::closed &&
                            watcher.try_recv(std::nothrow).error().code() == rnet::Code::closed;
        rnet_follower_free(follower.handle());
        rnet_domain_free(domain.handle());
        _exit(closed ? 0 : 1);
    }
    int status = 1;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    auto text = node.publisher("/text");
    text.send("x");
    CHECK(rnet::text_of(follower.recv_for(10s).data()) == "x");
}

TEST("null, and objects that are freed in any order") {
    rnet_snapshot* snapshot = nullptr;
    rnet_follower* follower = nullptr;
    const rnet_followed_message* message = nullptr;
    CHECK(rnet_domain_open("0", nullptr, nullptr, nullptr, nullptr) == RNET_INVALID_ARGUMENT);
    CHECK(rnet_domain_snapshot(nullptr, nullptr, &snapshot, nullptr) == RNET_INVALID_ARGUMENT);
    CHECK(rnet_domain_follow(nullptr, "/x", false, &follower, nullptr) == RNET_INVALID_ARGUMENT);
    CHECK(rnet_follower_recv(nullptr, 0, &message, nullptr) == RNET_INVALID_ARGUMENT);
    CHECK(!rnet_snapshot_node(nullptr, 0) && !rnet_snapshot_topic(nullptr, 0));
    CHECK(!rnet_snapshot_describe(nullptr) && rnet_domain_id(nullptr)[0] == '\0');
    rnet_follower_close(nullptr);
    rnet_follower_free(nullptr);
    rnet_node_watcher_close(nullptr);
    rnet_node_watcher_free(nullptr);
    rnet_snapshot_free(nullptr);
    rnet_domain_free(nullptr);

    check::Domain place;
    auto node = place.node();
    auto text = node.publisher("/text");
    rnet_domain* domain = nullptr;
    CHECK(rnet_domain_open(place.name.c_str(), place.dir.c_str(), nullptr, &domain, nullptr) == RNET_OK);
    CHECK(rnet_domain_follow(domain, nullptr, false, &follower, nullptr) == RNET_INVALID_ARGUMENT);
    CHECK(rnet_domain_follow(domain, "/text", false, &follower, nullptr) == RNET_OK);
    CHECK(rnet_domain_snapshot(domain, nullptr, &snapshot, nullptr) == RNET_OK);
    rnet_domain_free(domain);
    CHECK(std::strcmp(rnet_snapshot_node(snapshot, 0)->name, "/test") == 0);
    CHECK(!rnet_snapshot_node(snapshot, 1));
    CHECK(rnet_follower_recv(follower, -1, &message, nullptr) == RNET_INVALID_ARGUMENT);
    CHECK(rnet_follower_recv(follower, 0, &message, nullptr) == RNET_OK && !message);
    text.send("x");
    CHECK(rnet_follower_recv(follower, RNET_FOREVER, &message, nullptr) == RNET_OK && message->data.len == 1);
    rnet_snapshot_free(snapshot);
    rnet_follower_free(follower);
}

TEST("messages as JSON") {
    const auto leg = rnet::Message<Leg>::type().value();
    const auto bytes = rnet::from_json(leg, R"({"turns": 7, "force": 1.5})");
    Leg decoded{};
    CHECK(bytes.size() == sizeof decoded);
    std::memcpy(&decoded, bytes.data(), sizeof decoded);
    CHECK(decoded.turns == 7 && decoded.force == 1.5 && decoded.side == 0);
    CHECK(rnet::to_json(leg, bytes) == R"({"force":1.5,"turns":7,"side":0})");
    CHECK(rnet::to_json(leg).find("\"turns\"") != std::string::npos);

    const auto pose = rnet::Type::builtin("foxglove.Vector3").value();
    const auto encoded = rnet::from_json(pose, R"({"x": 1.0, "z": -2.5})");
    CHECK(rnet::to_json(pose, encoded).find("\"z\":-2.5") != std::string::npos);

    auto code = [](const auto& result) { return result.error().code(); };
    CHECK(code(rnet::from_json(leg, "{", std::nothrow)) == rnet::Code::bad_value);
    const auto unknown = rnet::from_json(leg, R"({"speed": 1})", std::nothrow);
    CHECK(code(unknown) == rnet::Code::bad_value && std::strstr(unknown.error().what(), "speed"));
    CHECK(code(rnet::from_json(pose, R"({"x": "far"})", std::nothrow)) == rnet::Code::bad_value);
    CHECK(code(rnet::to_json(leg, rnet::bytes_of("short"), std::nothrow)) == rnet::Code::bad_value);
    CHECK(code(rnet::to_json(pose, rnet::bytes_of("\xff\xff"), std::nothrow)) == rnet::Code::bad_value);
    CHECK(code(rnet::to_json(rnet::Type(), encoded, std::nothrow)) == rnet::Code::bad_value);
    CHECK(rnet_buffer_text(nullptr)[0] == '\0' && rnet_buffer_bytes(nullptr).len == 0);
    rnet_buffer_free(nullptr);
}

RNET_TEST_MAIN()
