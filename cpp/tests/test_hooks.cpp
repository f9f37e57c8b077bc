// Callbacks for events, statistics, the log, and subscriptions by pattern.
#include "domain.hpp"

#include <rnet/any_subscription.hpp>
#include <rnet/hooks.hpp>
#include <rnet/log.hpp>
#include <rnet/stats.hpp>

#include <future>
#include <memory>
#include <mutex>
#include <set>
#include <stdexcept>
#include <vector>

using namespace check;
using rnet::Code;
using rnet::MatchKind;

namespace {

/// Texts that callbacks add and the test reads.
class Notes {
public:
    void add(std::string note) {
        std::lock_guard<std::mutex> lock(mutex_);
        notes_.push_back(std::move(note));
    }
    bool has(const std::string& note) const {
        std::lock_guard<std::mutex> lock(mutex_);
        for (const auto& one : notes_) {
            if (one == note) return true;
        }
        return false;
    }
    bool waits_for(const std::string& note) const {
        return eventually([&] { return has(note); });
    }

private:
    mutable std::mutex mutex_;
    std::vector<std::string> notes_;
};

std::string note_of(const rnet::MatchEvent& event) {
    return std::to_string(static_cast<int>(event.kind())) + " " + std::string(event.node());
}

}  // namespace

TEST("matches of both ends are reported, until the guard is destroyed") {
    Domain domain;
    auto a = domain.node("a"), b = domain.node("b");
    auto publisher = a.publisher("/t");
    Notes at_publisher, at_subscriber;
    auto first = rnet::on_match(publisher, [&](auto& event) { at_publisher.add(note_of(event)); });
    auto subscriber = b.subscriber("/t");
    auto second = rnet::on_match(subscriber, [&](auto& event) { at_subscriber.add(note_of(event)); });
    CHECK(at_publisher.waits_for("1 /b"));
    subscriber.close();
    CHECK(at_publisher.waits_for("2 /b"));
    first.close();
    std::atomic<int> calls{0};
    first = rnet::on_match(publisher, [&](auto&) { ++calls; });
    first.close();
    auto again = b.subscriber("/t");
    again.wait_for_publishers();
    CHECK(calls == 0);
}

TEST("a subscription has hooks and statistics, too") {
    Domain domain;
    auto a = domain.node("a"), b = domain.node("b");
    std::atomic<int> received{0};
    auto subscription = b.subscriber("/t", [&](auto&) { ++received; });
    Notes notes;
    auto guard = rnet::on_match(subscription, [&](auto& event) { notes.add(note_of(event)); });
    auto publisher = a.publisher("/t");
    publisher.wait_for_subscribers();
    publisher.send("one");
    CHECK(notes.waits_for("1 /a"));
    CHECK(eventually([&] { return received == 1; }));
    auto stats = rnet::stats(subscription);
    CHECK(stats.size() == 1 && stats[0].node == "/a" && stats[0].received == 1 && stats[0].connected);
    CHECK(rnet::behind(subscription).messages == 0);
    CHECK(rnet::liveliness(subscription).alive == 1);
    auto counts = rnet::detail::initialised<rnet_subscriber_counts>();
    CHECK(rnet_subscription_get_counts(subscription.handle(), &counts, nullptr) == RNET_OK);
    CHECK(counts.lost_overrun == 0 && counts.alive == 1 && counts.not_alive == 0);
}

TEST("an incompatible peer is reported with its reason") {
    Domain domain;
    auto a = domain.node("a"), b = domain.node("b");
    auto publisher = a.publisher("/t");
    Notes notes;
    auto guard = rnet::on_match(publisher, [&](const rnet::MatchEvent& event) {
        const bool named = event.why().find("/b") != std::string_view::npos;
        if (event.kind() == MatchKind::incompatible && named && event.node().empty()) notes.add("why");
    });
    rnet::SubscriberOptions options;
    options.reliable = true;
    auto subscriber = b.subscriber("/t", options);
    CHECK(notes.waits_for("why"));
    CHECK(eventually([&] { return rnet::incompatible(publisher).size() == 1; }));
    CHECK(rnet::subscribers(publisher).empty());
}

TEST("missed deadlines and liveliness are reported") {
    Domain domain;
    auto a = domain.node("a"), b = domain.node("b");
    rnet::PublisherOptions offered;
    offered.deadline = 20ms;
    offered.liveliness_lease = 50ms;
    rnet::SubscriberOptions wanted;
    wanted.deadline = 20ms;
    wanted.liveliness_lease = 50ms;
    auto publisher = a.publisher("/t", offered);
    auto subscriber = b.subscriber("/t", wanted);
    Notes notes;
    auto at_publisher = rnet::on_deadline(publisher, [&](const rnet::DeadlineEvent& event) {
        const bool counted = event.missed() > 0 && event.total() >= event.missed();
        if (counted) notes.add("offered by " + std::string(event.node()));
    });
    auto at_subscriber = rnet::on_deadline(subscriber, [&](const rnet::DeadlineEvent& event) {
        if (event.publisher() != 0) notes.add("missed by " + std::string(event.node()));
    });
    auto alive = rnet::on_liveliness(subscriber, [&](const rnet::LivelinessEvent& event) {
        const auto counts = event.counts();
        if (counts.alive + counts.not_alive == 1) notes.add(event.is_alive() ? "alive" : "not alive");
    });
    publisher.wait_for_subscribers();
    publisher.send("one");
    CHECK(subscriber.recv_for(limit).text() == "one");
    CHECK(notes.waits_for("offered by /a"));
    CHECK(notes.waits_for("missed by /a"));
    CHECK(notes.waits_for("not alive"));
    CHECK(rnet_publisher_deadline_missed(publisher.handle()) > 0);
    CHECK(eventually([&] { return rnet::liveliness(subscriber).not_alive == 1; }));
    publisher.assert_alive();
    CHECK(notes.waits_for("alive"));
}

TEST("nodes and endpoints are reported") {
    Domain domain;
    auto watcher = domain.node("watcher");
    Notes nodes, endpoints;
    auto first = rnet::on_node(watcher, [&](const rnet::NodeEvent& event) {
        nodes.add(std::to_string(static_cast<int>(event.kind())) + " " + std::string(event.node()));
    });
    auto second = rnet::on_endpoint(watcher, [&](const rnet::EndpointEvent& event) {
        rnet_type* type = nullptr;
        const bool opened = event.kind() == rnet::EndpointKind::opened;
        if (opened && rnet_endpoint_event_type(event.handle(), &type, nullptr) != RNET_OK) return;
        rnet_type_free(type);
        if (event.qos_json().empty() || event.count() != 1 || !event.type_name().empty()) return;
        auto note = std::to_string(static_cast<int>(event.kind()));
        note += event.is_publisher() ? " publisher " : " ";
        endpoints.add(note + std::string(event.topic()) + " of " + std::string(event.node()));
    });
    {
        auto other = domain.node("other");
        CHECK(nodes.waits_for("1 /other"));
        CHECK(rnet::peers(watcher) == std::vector<std::string>{"/other"});
        auto publisher = other.publisher("/t");
        CHECK(endpoints.waits_for("1 publisher /t of /other"));
    }
    CHECK(endpoints.waits_for("3 publisher /t of /other"));
    CHECK(nodes.waits_for("2 /other"));
    CHECK(in_child([&] {
              rnet::NodeOptions options;
              options.domain = domain.name;
              options.dir = domain.dir;
              auto made = rnet::Node::create("dying", options, std::nothrow);
              if (made) kill(getpid(), SIGKILL);
              return 1;
          }) == -1);
    CHECK(nodes.waits_for("3 /dying"));
}

TEST("statistics name what was received, lost and skipped") {
    Domain domain;
    auto a = domain.node("a"), b = domain.node("b");
    auto publisher = a.publisher("/t");
    rnet::SubscriberOptions options;
    options.keep_last = 2;
    auto subscriber = b.subscriber("/t", options);
    publisher.wait_for_subscribers();
    subscriber.wait_for_publishers();
    for (int n = 0; n < 5; ++n) publisher.send("x");
    CHECK(rnet::behind(subscriber).messages > 0);
    CHECK(subscriber.recv_for(limit).seq() == 3);
    CHECK(subscriber.recv_for(limit).seq() == 4);
    auto stats = rnet::stats(subscriber);
    CHECK(stats.size() == 1 && stats[0].received == 2 && stats[0].skipped == 3 && stats[0].lost() == 0);
    CHECK(stats[0].publisher == rnet_publisher_id(publisher.handle()) && stats[0].node == "/a");
    CHECK(rnet_publisher_sent(publisher.handle()) == 5);
    CHECK(rnet::publishers(subscriber).at(0).node == "/a");
    CHECK(rnet::subscribers(publisher).at(0).node == "/b");
    CHECK(rnet_publisher_publish_gap(publisher.handle(), RNET_LOSS_LINK, 7, nullptr) == RNET_OK);
    CHECK(rnet_publisher_publish_gap(publisher.handle(), 9, 7, nullptr) == RNET_INVALID_ARGUMENT);
    CHECK(eventually([&] { return !subscriber.try_recv() && rnet::stats(subscriber).at(0).lost_link == 7; }));
}

TEST("one callback receives all topics of a pattern") {
    Domain domain;
    auto a = domain.node("a"), b = domain.node("b");
    Notes notes;
    auto front = a.publisher("/camera/front");
    rnet::SubscriberOptions options;
    options.transient_local = true;
    auto all = rnet::subscribe_any(b, "/camera/*", [&](auto& sample) {
        const std::string from = std::string(sample.topic()) + " " + std::string(sample.node());
        notes.add(from + " " + std::string(sample.text()));
    });
    front.wait_for_subscribers();
    front.send("f");
    CHECK(notes.waits_for("/camera/front /a f"));
    auto rear = a.publisher("/camera/rear"), lidar = a.publisher("/lidar");
    rear.wait_for_subscribers();
    lidar.send("l");
    rear.send("r");
    CHECK(notes.waits_for("/camera/rear /a r"));
    CHECK((all.topics() == std::vector<std::string>{"/camera/front", "/camera/rear"}));
    CHECK(all.stats("/camera/front").at(0).received == 1);
    CHECK(all.stats("/lidar").empty());
    CHECK(thrown([&] { (void)rnet::subscribe_any(b, "/camera/[", [](auto&) {}); }) == Code::bad_name);
    all.close();
    front.send("g");
    CHECK(!notes.has("/camera/front /a g"));
}

TEST("an exception in a hook is counted, and the hook is called again") {
    Domain domain;
    auto a = domain.node("a"), b = domain.node("b");
    auto publisher = a.publisher("/t");
    auto guard = rnet::on_match(publisher, [](auto&) { throw std::runtime_error("on purpose"); });
    {
        auto subscriber = b.subscriber("/t");
        CHECK(eventually([&] { return rnet_node_callback_errors(a.handle()) == 1; }));
    }
    CHECK(eventually([&] { return rnet_node_callback_errors(a.handle()) == 2; }));
}

TEST("the context of a hook is freed once, also if the registration fails") {
    Domain domain;
    auto node = domain.node();
    auto publisher = node.publisher("/t");
    auto count = [](const rnet_match_event*, void* context) { ++static_cast<Context*>(context)->calls; };
    Context context;
    rnet_guard* guard = nullptr;
    auto callbacks = rnet::detail::initialised<rnet_event_callbacks>();
    const auto hook = [&](rnet_publisher* at, rnet_match_function callback, rnet_guard** out) {
        callbacks.on_match = callback;
        return rnet_publisher_on_event(at, &callbacks, &context, Context::free, out, nullptr);
    };
    CHECK(hook(publisher.handle(), nullptr, &guard) == RNET_INVALID_ARGUMENT && context.freed == 1);
    CHECK(hook(nullptr, count, &guard) == RNET_INVALID_ARGUMENT && context.freed == 2);
    CHECK(hook(publisher.handle(), count, nullptr) == RNET_INVALID_ARGUMENT);
    CHECK(eventually([&] { return context.freed == 3; }) && guard == nullptr);
    CHECK(hook(publisher.handle(), count, &guard) == RNET_OK);
    rnet_guard_free(guard);
    CHECK(eventually([&] { return context.freed == 4; }));
    guard = nullptr;
    CHECK(rnet_node_on_node(node.handle(), nullptr, &context, Context::free, &guard, nullptr)
          == RNET_INVALID_ARGUMENT);
    CHECK(context.freed == 5);
    publisher.close(limit);
    CHECK(hook(publisher.handle(), count, &guard) == RNET_CLOSED && context.freed == 6);
    // Publishers have no liveliness of others, and a struct must be initialised.
    callbacks.on_liveliness = [](const rnet_liveliness_event*, void*) {};
    auto other = node.publisher("/t");
    CHECK(hook(other.handle(), nullptr, &guard) == RNET_INVALID_ARGUMENT && context.freed == 7);
    callbacks.struct_size = 0;
    CHECK(hook(other.handle(), count, &guard) == RNET_INVALID_ARGUMENT && context.freed == 8);
    rnet_guard_free(nullptr);
}

TEST("guards may be freed after their endpoint and node, and may be detached") {
    Domain domain;
    Context context;
    rnet_guard *first = nullptr, *second = nullptr, *third = nullptr;
    {
        auto node = domain.node();
        auto publisher = node.publisher("/t");
        auto callbacks = rnet::detail::initialised<rnet_event_callbacks>();
        callbacks.on_match = [](const rnet_match_event*, void* at) { ++static_cast<Context*>(at)->calls; };
        auto on_node = [](const rnet_node_event*, void* at) { ++static_cast<Context*>(at)->calls; };
        auto free = Context::free;
        for (rnet_guard** out : {&first, &second}) {
            auto* at = publisher.handle();
            CHECK(rnet_publisher_on_event(at, &callbacks, &context, free, out, nullptr) == RNET_OK);
        }
        CHECK(rnet_node_on_node(node.handle(), on_node, &context, free, &third, nullptr) == RNET_OK);
        rnet_guard_detach(first);
        rnet_guard_detach(third);
        CHECK(context.freed == 0);
        auto subscriber = node.subscriber("/t");
        CHECK(eventually([&] { return context.calls == 2; }));
    }
    CHECK(eventually([&] { return context.freed == 3; }));
    rnet_guard_free(second);
}

TEST("closing the node ends hooks, and closing it within a hook does not block") {
    Domain domain;
    auto node = std::make_shared<rnet::Node>(domain.node());
    auto publisher = node->publisher("/t");
    std::promise<void> closed;
    auto alive = std::make_shared<int>(1);
    std::weak_ptr<int> context = alive;
    auto guard = rnet::on_match(publisher, [&, alive](auto&) {
        node->close();
        closed.set_value();
    });
    alive.reset();
    auto subscriber = node->subscriber("/t");
    CHECK(closed.get_future().wait_for(limit) == std::future_status::ready);
    CHECK(eventually([&] { return context.expired(); }));
    CHECK(thrown([&] { publisher.send("x"); }) == Code::closed);
    CHECK(thrown([&] { (void)rnet::on_node(*node, [](auto&) {}); }) == Code::closed);
    CHECK(thrown([&] { (void)rnet::on_endpoint(*node, [](auto&) {}); }) == Code::closed);
    CHECK(thrown([&] { rnet::peers(*node); }) == Code::closed);
    CHECK(thrown([&] { rnet::stats(subscriber); }) == Code::closed);
}

TEST("a guard that is freed waits for a running hook") {
    Domain domain;
    auto node = domain.node();
    auto publisher = node.publisher("/t");
    std::promise<void> entered;
    std::atomic<bool> left{false};
    auto guard = rnet::on_match(publisher, [&](auto&) {
        entered.set_value();
        std::this_thread::sleep_for(50ms);  // sleep: a callback that takes its time
        left = true;
    });
    auto subscriber = node.subscriber("/t");
    CHECK(entered.get_future().wait_for(limit) == std::future_status::ready);
    guard.close();
    CHECK(left);
}

TEST("a subscriber in use refuses hooks and queries of other threads") {
    Domain domain;
    auto node = domain.node();
    auto subscriber = node.subscriber("/t");
    std::atomic<bool> waiting{false};
    std::thread waiter([&] {
        waiting = true;
        (void)undisturbed([&] { return subscriber.recv(std::nothrow); });
    });
    CHECK(eventually([&] {
        auto found = rnet::stats(subscriber, std::nothrow);
        return waiting && !found && found.error().code() == Code::wrong_thread;
    }));
    CHECK(thrown([&] { (void)rnet::on_match(subscriber, [](auto&) {}); }) == Code::wrong_thread);
    subscriber.close();
    waiter.join();
}

TEST("null objects are refused") {
    rnet_stats_list* stats = nullptr;
    rnet_peer_list* peers = nullptr;
    rnet_error_list* errors = nullptr;
    rnet_value* names = nullptr;
    auto counts = rnet::detail::initialised<rnet_subscriber_counts>();
    CHECK(rnet_subscriber_stats(nullptr, &stats, nullptr) == RNET_INVALID_ARGUMENT);
    CHECK(rnet_subscription_stats(nullptr, &stats, nullptr) == RNET_INVALID_ARGUMENT);
    CHECK(rnet_subscriber_get_counts(nullptr, &counts, nullptr) == RNET_INVALID_ARGUMENT);
    CHECK(rnet_subscription_get_counts(nullptr, &counts, nullptr) == RNET_INVALID_ARGUMENT);
    CHECK(rnet_subscriber_publishers(nullptr, &peers, nullptr) == RNET_INVALID_ARGUMENT);
    CHECK(rnet_publisher_subscribers(nullptr, &peers, nullptr) == RNET_INVALID_ARGUMENT);
    CHECK(rnet_publisher_incompatible(nullptr, &errors, nullptr) == RNET_INVALID_ARGUMENT);
    CHECK(rnet_node_peers(nullptr, &names, nullptr) == RNET_INVALID_ARGUMENT);
    CHECK(rnet_stats_list_get(nullptr, 0) == nullptr && rnet_peer_list_get(nullptr, 0) == nullptr);
    CHECK(rnet_error_list_get(nullptr, 0) == nullptr);
    CHECK(rnet_publisher_id(nullptr) == 0 && rnet_publisher_sent(nullptr) == 0);
    CHECK(rnet_node_callback_errors(nullptr) == 0);
    CHECK(*rnet_match_event_node(nullptr) == '\0' && rnet_match_event_error(nullptr) == nullptr);
    rnet_stats_list_free(nullptr);
    rnet_peer_list_free(nullptr);
    rnet_error_list_free(nullptr);
    rnet_any_subscription_free(nullptr);
}

TEST("a list ends with null") {
    Domain domain;
    auto node = domain.node();
    auto publisher = node.publisher("/t");
    auto subscriber = node.subscriber("/t");
    subscriber.wait_for_publishers();
    rnet_stats_list* list = nullptr;
    CHECK(rnet_subscriber_stats(subscriber.handle(), &list, nullptr) == RNET_OK);
    const rnet_publisher_stats* stats = rnet_stats_list_get(list, 0);
    CHECK(stats && stats->connected && stats->publisher == rnet_publisher_id(publisher.handle()));
    CHECK(!rnet_stats_list_get(list, 1));
    rnet_stats_list_free(list);
    rnet_peer_list* peers = nullptr;
    CHECK(rnet_subscriber_publishers(subscriber.handle(), &peers, nullptr) == RNET_OK);
    CHECK(rnet_peer_list_get(peers, 0) && !rnet_peer_list_get(peers, 1));
    rnet_peer_list_free(peers);
}

TEST("log lines are published with their place in the source") {
    Domain domain;
    auto node = domain.node("arm"), reader = domain.node("reader");
    rnet::Logger log(node);
    log.set_level(rnet::LogLevel::info);
    CHECK(log.level() == rnet::LogLevel::info);
    CHECK(!log.is_enabled(rnet::LogLevel::debug) && log.is_enabled(rnet::LogLevel::warning));
    log.debug("not published");
    log.info("the arm is at home");
    log.publish(rnet::LogLevel::debug, "of another library", "other.cpp", 7);
    log.log(static_cast<rnet::LogLevel>(9), "of no level");
    rnet::SubscriberOptions options;
    options.transient_local = true;
    options.keep_all = true;
    auto lines = reader.subscriber("/log", options);
    const auto has = [](const rnet::Sample<>& line, const char* text) {
        return line.text().find(text) != std::string_view::npos;
    };
    const auto first = lines.recv_for(limit), second = lines.recv_for(limit);
    CHECK(has(first, "the arm is at home") && has(first, "test_hooks.cpp") && has(first, "/arm"));
    CHECK(has(second, "of another library") && has(second, "other.cpp"));
    CHECK(!lines.try_recv());
}

TEST("a flood of log lines is limited and counted, from several threads") {
    Domain domain;
    auto node = domain.node();
    rnet::Logger log(node);
    std::vector<std::thread> threads;
    for (int n = 0; n < 4; ++n) {
        threads.emplace_back([&] {
            for (int line = 0; line < 500; ++line) log.publish(rnet::LogLevel::info, "again", __FILE__, 1);
        });
    }
    for (auto& thread : threads) thread.join();
    CHECK(log.suppressed_count() > 0);
}

TEST("logging to a null or closed node, and bytes that are not UTF-8, do nothing bad") {
    Domain domain;
    auto node = domain.node();
    rnet_node_log(node.handle(), RNET_LOG_INFO, "\xff\xfe", nullptr, 0);
    rnet_node_log(node.handle(), RNET_LOG_INFO, nullptr, nullptr, 0);
    rnet_node_log(nullptr, RNET_LOG_INFO, "nowhere", nullptr, 0);
    CHECK(in_child([&] {
              rnet_node_log(node.handle(), RNET_LOG_INFO, "child", nullptr, 0);
              return 0;
          }) == 0);
    node.close();
    rnet::Logger log(node);
    log.info("closed");
    CHECK(!log.is_enabled(rnet::LogLevel::fatal) && rnet_node_log_level(node.handle()) == 0);
}

TEST("objects of the parent are closed in a forked child") {
    Domain domain;
    auto node = domain.node();
    auto publisher = node.publisher("/t");
    auto subscriber = node.subscriber("/t");
    auto guard = rnet::on_node(node, [](auto&) {});
    CHECK(in_child([&] {
              if (thrown([&] { rnet::peers(node); }) != Code::closed) return 1;
              if (thrown([&] { rnet::stats(subscriber); }) != Code::closed) return 2;
              if (thrown([&] { (void)rnet::on_match(publisher, [](auto&) {}); }) != Code::closed) return 3;
              if (rnet_publisher_sent(publisher.handle()) != 0) return 4;
              guard.close();
              return 0;
          }) == 0);
    CHECK(rnet::stats(subscriber, std::nothrow).has_value());
}

RNET_TEST_MAIN()
