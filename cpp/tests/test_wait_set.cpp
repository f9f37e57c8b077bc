// Wait sets, and descriptors for event loops.
#include "domain.hpp"

#include <rnet/hooks.hpp>
#include <rnet/stats.hpp>
#include <rnet/timer.hpp>
#include <rnet/wait_set.hpp>

#include <fcntl.h>
#include <future>
#include <memory>
#include <poll.h>
#include <sys/epoll.h>
#include <vector>

using namespace check;
using rnet::Code;

namespace {

bool is_readable(int fd, std::chrono::milliseconds wait = 0ms) {
    pollfd one{fd, POLLIN, 0};
    return poll(&one, 1, static_cast<int>(wait.count())) == 1;
}

/// Receives the rest, until the descriptor is not readable.
bool drained(rnet::Subscriber<>& subscriber, int fd) {
    return eventually([&] {
        while (subscriber.try_recv()) {
        }
        return !is_readable(fd);
    });
}

rnet::SubscriberOptions keep_all() {
    rnet::SubscriberOptions options;
    options.keep_all = true;
    return options;
}

}  // namespace

TEST("a wait set finds the ready objects, which are received from as usual") {
    Domain domain;
    auto node = domain.node(), other = domain.node("other");
    auto stop = node.subscriber("/stop"), scan = node.subscriber("/scan");
    rnet::Rate idle(node, 0.001);
    rnet::WaitSet waits(node);
    waits.attach(stop);
    waits.attach(scan);
    waits.attach(idle);
    CHECK(waits.wait_for(0s) == 0 && waits.wait_for(1ms) == 0);
    auto stops = other.publisher("/stop"), scans = other.publisher("/scan");
    stops.wait_for_subscribers();
    scans.wait_for_subscribers();
    stops.send("one");
    // A new publisher makes a subscriber ready, too.
    CHECK(eventually([&] { return !scan.try_recv() && waits.wait_for(limit) == 1 && waits.is_ready(stop); }));
    CHECK(!waits.is_ready(scan) && !waits.is_ready(idle));
    // What is not read is ready again.
    CHECK(waits.wait() == 1 && waits.is_ready(stop));
    CHECK(stop.try_recv()->text() == "one");
    CHECK(!stop.try_recv());
    scans.send("two");
    CHECK(waits.wait_for(limit) > 0 && waits.is_ready(scan));
    stops.send("three");
    CHECK(eventually([&] { return waits.wait() == 2; }));
    CHECK(rnet_wait_set_ready(waits.handle(), 0) == stop.handle());
    CHECK(rnet_wait_set_ready(waits.handle(), 1) == scan.handle());
    CHECK(rnet_wait_set_ready(waits.handle(), 2) == nullptr);
    CHECK(scan.recv().text() == "two" && stop.recv_for(limit).text() == "three");
    CHECK(waits.wait_for(0s) == 0);
}

TEST("a rate is ready when its tick is due") {
    Domain domain;
    auto node = domain.node();
    rnet::Rate fast(node, 1000.0), host(1000.0);
    rnet::WaitSet waits(node);
    waits.attach(fast);
    waits.attach(host);
    for (int n = 0; n < 10; ++n) {
        CHECK(waits.wait_for(limit) > 0);
        CHECK(!waits.is_ready(fast) || fast.try_tick());
        CHECK(!waits.is_ready(host) || host.try_tick());
    }
}

TEST("attaching and detaching take effect during a wait") {
    Domain domain;
    auto node = domain.node(), other = domain.node("other");
    auto subscriber = node.subscriber("/t");
    auto publisher = other.publisher("/t");
    publisher.wait_for_subscribers();
    publisher.send("one");
    rnet::WaitSet waits(node);
    auto ready = std::async(std::launch::async, [&] { return waits.wait_for(limit); });
    CHECK(ready.wait_for(5ms) == std::future_status::timeout);
    waits.attach(subscriber);
    CHECK(ready.get() == 1 && waits.is_ready(subscriber));
    CHECK(subscriber.recv().text() == "one");

    const auto wait = [&] { return undisturbed([&] { return waits.wait(std::nothrow); }); };
    auto second = std::async(std::launch::async, wait);
    CHECK(eventually([&] {
        auto found = rnet::stats(subscriber, std::nothrow);
        return !found && found.error().code() == Code::wrong_thread;
    }));
    waits.detach(subscriber);
    // It is free for other threads again, and does not end the wait.
    CHECK(eventually([&] { return rnet::stats(subscriber, std::nothrow).has_value(); }));
    publisher.send("two");
    CHECK(subscriber.recv_for(limit).text() == "two");
    CHECK(second.wait_for(5ms) == std::future_status::timeout);
    waits.interrupt();
    auto result = second.get();
    CHECK(!result && result.error().code() == Code::interrupted);
    // One interruption ends one wait.
    CHECK(waits.wait_for(1ms) == 0);
    waits.interrupt();
    CHECK(thrown([&] { waits.wait(); }) == Code::interrupted);
}

TEST("an object is attached once, and detached once") {
    Domain domain;
    auto node = domain.node(), other = domain.node("other");
    auto subscriber = node.subscriber("/t"), foreign = other.subscriber("/t");
    rnet::WaitSet waits(node);
    waits.attach(subscriber);
    CHECK(thrown([&] { waits.attach(subscriber); }) == Code::bad_value);
    waits.detach(subscriber);
    CHECK(thrown([&] { waits.detach(subscriber); }) == Code::bad_value);
    auto twice = waits.detach(subscriber, std::nothrow);
    CHECK(std::string(twice.error().what()).find("not attached") != std::string::npos);
    waits.attach(subscriber);
    waits.attach(foreign);
    CHECK(thrown([&] { waits.wait(); }) == Code::bad_value);
    waits.detach(foreign);
    CHECK(waits.wait_for(1ms) == 0);
}

TEST("a closed object is ready until it is detached, and a freed one is gone") {
    Domain domain;
    auto node = domain.node();
    auto first = std::make_unique<rnet::Subscriber<>>(node.subscriber("/a"));
    auto second = node.subscriber("/b");
    rnet::WaitSet waits(node);
    waits.attach(*first);
    waits.attach(second);
    auto ready = std::async(std::launch::async, [&] { return waits.wait(); });
    CHECK(ready.wait_for(5ms) == std::future_status::timeout);
    first->close();
    CHECK(ready.get() == 1 && waits.is_ready(*first));
    CHECK(thrown([&] { first->recv(); }) == Code::closed);
    CHECK(waits.wait() == 1);
    first.reset();
    CHECK(waits.wait_for(1ms) == 0);
    // A new object may have the same address.
    auto third = node.subscriber("/a");
    waits.attach(third);
    second.close();
    CHECK(waits.wait() == 1 && waits.is_ready(second));
    waits.detach(second);
    CHECK(waits.wait_for(1ms) == 0);
}

TEST("a message ends a wait, and so does closing a rate of another node") {
    Domain domain;
    auto node = domain.node(), other = domain.node("other");
    auto subscriber = node.subscriber("/t");
    auto publisher = other.publisher("/t");
    publisher.wait_for_subscribers();
    subscriber.wait_for_publishers();
    rnet::Rate rate(other, 0.001);
    rnet::WaitSet waits(node);
    waits.attach(subscriber);
    waits.attach(rate);
    for (int n = 0; n < 100; ++n) {
        auto ready = std::async(std::launch::async, [&] { return waits.wait(); });
        if (n % 2 == 0) std::this_thread::sleep_for(1ms);  // sleep: lets the wait begin
        publisher.send("x");
        CHECK(ready.wait_for(limit) == std::future_status::ready && ready.get() == 1);
        while (subscriber.try_recv()) {
        }
    }
    auto ready = std::async(std::launch::async, [&] { return waits.wait(); });
    CHECK(ready.wait_for(5ms) == std::future_status::timeout);
    other.close();
    CHECK(ready.wait_for(limit) == std::future_status::ready && ready.get() > 0);
    CHECK(thrown([&] { rate.try_tick(); }) == Code::closed);
}

TEST("closing the node ends a wait") {
    Domain domain;
    auto node = domain.node();
    auto subscriber = node.subscriber("/t");
    rnet::Rate rate(node, 0.001);
    rnet::WaitSet waits(node), unused(node);
    waits.attach(subscriber);
    waits.attach(rate);
    auto ended = std::async(std::launch::async, [&] { return thrown([&] { waits.wait(); }); });
    CHECK(ended.wait_for(5ms) == std::future_status::timeout);
    node.close();
    CHECK(ended.wait_for(limit) == std::future_status::ready && ended.get() == Code::closed);
    CHECK(thrown([&] { waits.wait(); }) == Code::closed);
    CHECK(thrown([&] { (void)rnet::WaitSet(node); }) == Code::closed);
    CHECK(thrown([&] { subscriber.try_recv(); }) == Code::closed);
}

TEST("a second thread that waits with a set, or uses an attached object, is refused") {
    Domain domain;
    auto node = domain.node();
    auto subscriber = node.subscriber("/t");
    rnet::WaitSet waits(node);
    waits.attach(subscriber);
    const auto wait = [&] { return undisturbed([&] { return waits.wait(std::nothrow); }); };
    auto first = std::async(std::launch::async, wait);
    CHECK(eventually([&] {
        auto found = rnet::stats(subscriber, std::nothrow);
        return !found && found.error().code() == Code::wrong_thread;
    }));
    CHECK(thrown([&] { waits.wait(); }) == Code::wrong_thread);
    CHECK(thrown([&] { subscriber.try_recv(); }) == Code::wrong_thread);
    waits.interrupt();
    CHECK(first.get().error().code() == Code::interrupted);
    const auto receive = [&] { return undisturbed([&] { return subscriber.recv(std::nothrow); }); };
    auto second = std::async(std::launch::async, receive);
    CHECK(eventually([&] { return thrown([&] { waits.wait_for(1ms); }) == Code::wrong_thread; }));
    subscriber.close();
    CHECK(second.get().error().code() == Code::closed);
}

TEST("a wait set ends borrowed samples, and works after hooks and a fork") {
    Domain domain;
    auto node = domain.node();
    auto publisher = node.publisher("/t");
    auto subscriber = node.subscriber("/t", keep_all());
    publisher.wait_for_subscribers();
    publisher.send("one");
    publisher.send("two");
    CHECK(subscriber.recv_view().text() == "one");
    rnet::WaitSet waits(node);
    waits.attach(subscriber);
    CHECK(waits.wait() == 1);
    CHECK(subscriber.recv().text() == "two");
    CHECK(in_child([&] { return thrown([&] { waits.wait_for(1ms); }) == Code::closed ? 0 : 1; }) == 0);
    publisher.send("three");
    CHECK(waits.wait_for(limit) == 1);
}

TEST("null wait sets are refused") {
    Domain domain;
    auto node = domain.node();
    std::size_t count = 0;
    rnet_wait_set* set = nullptr;
    CHECK(rnet_wait_set_new(nullptr, &set, nullptr) == RNET_INVALID_ARGUMENT);
    CHECK(rnet_wait_set_wait(nullptr, 0, &count, nullptr) == RNET_INVALID_ARGUMENT);
    CHECK(rnet_wait_set_attach_subscriber(nullptr, nullptr, nullptr) == RNET_INVALID_ARGUMENT);
    CHECK(rnet_wait_set_ready(nullptr, 0) == nullptr);
    CHECK(rnet_wait_set_new(node.handle(), &set, nullptr) == RNET_OK);
    CHECK(rnet_wait_set_attach_subscriber(set, nullptr, nullptr) == RNET_INVALID_ARGUMENT);
    CHECK(rnet_wait_set_attach_rate(set, nullptr, nullptr) == RNET_INVALID_ARGUMENT);
    CHECK(rnet_wait_set_wait(set, -1, &count, nullptr) == RNET_INVALID_ARGUMENT);
    CHECK(rnet_wait_set_wait(set, 0, nullptr, nullptr) == RNET_INVALID_ARGUMENT);
    rnet_wait_set_interrupt(nullptr);
    rnet_wait_set_free(nullptr);
    rnet_wait_set_free(set);
}

TEST("a descriptor is readable until everything is received") {
    Domain domain;
    auto a = domain.node("a"), b = domain.node("b");
    auto publisher = a.publisher("/t");
    auto subscriber = b.subscriber("/t", keep_all());
    publisher.wait_for_subscribers();
    const int fd = rnet::fd(subscriber);
    CHECK(fd >= 0 && rnet::fd(subscriber) == fd);
    CHECK(!subscriber.try_recv());
    for (int round = 0; round < 200; ++round) {
        publisher.send(std::to_string(round));
        publisher.send("second");
        CHECK(is_readable(fd, limit));
        auto first = subscriber.try_recv();
        CHECK(first && first->text() == std::to_string(round));
        CHECK(is_readable(fd, limit));
        // The two may arrive apart.
        CHECK(eventually([&] { return subscriber.try_recv().has_value(); }));
        while (subscriber.try_recv()) {
        }
    }
    CHECK(drained(subscriber, fd));
    CHECK(rnet::stats(subscriber).at(0).received == 400 && !is_readable(fd));
    CHECK(rnet::behind(subscriber).messages == 0);
}

TEST("no wake-up of a descriptor is lost") {
    constexpr int count = 20'000;
    Domain domain;
    auto a = domain.node("a"), b = domain.node("b");
    rnet::PublisherOptions offered;
    offered.reliable = true;
    offered.full_timeout = limit;
    rnet::SubscriberOptions wanted;
    wanted.reliable = true;
    auto publisher = a.publisher("/t", offered);
    auto subscriber = b.subscriber("/t", wanted);
    publisher.wait_for_subscribers();
    std::thread sender([&] {
        for (int n = 0; n < count; ++n) {
            publisher.send(std::to_string(n));
            for (volatile int spin = 0; spin < n * 7919 % 4000;) spin = spin + 1;
        }
    });
    const int fd = rnet::fd(subscriber);
    int next = 0;
    bool in_order = true;
    while (next < count && is_readable(fd, limit)) {
        while (auto sample = subscriber.try_recv_view()) {
            in_order = in_order && sample->text() == std::to_string(next);
            ++next;
        }
    }
    sender.join();
    CHECK(next == count && in_order);
}

TEST("all other ways of receiving work with a descriptor") {
    Domain domain;
    auto a = domain.node("a"), b = domain.node("b");
    auto publisher = a.publisher("/t");
    auto subscriber = b.subscriber("/t", keep_all());
    const int fd = rnet::fd(subscriber);
    subscriber.wait_for_publishers();
    publisher.wait_for_subscribers();
    CHECK(subscriber.publisher_count() == 1);
    publisher.send("one");
    auto view = subscriber.recv_view();
    CHECK(view.text() == "one" && view.topic() == "/t" && view.node() == "/a");
    publisher.send("two");
    CHECK(subscriber.recv_for(limit).text() == "two");
    CHECK(thrown([&] { subscriber.recv_for(1ms); }) == Code::timeout);
    CHECK(drained(subscriber, fd));
    publisher.send("three");
    publisher.send("four");
    CHECK(is_readable(fd, limit));
    CHECK(eventually([&] {
        auto newest = subscriber.try_latest();
        return newest && newest->text() == "four";
    }));
    CHECK(!subscriber.try_latest());
    CHECK(drained(subscriber, fd));
    publisher.send("five");
    CHECK(subscriber.latest().text() == "five");
    auto later = std::async(std::launch::async, [&] {
        std::this_thread::sleep_for(5ms);  // sleep: lets the wait begin
        publisher.send("six");
    });
    CHECK(subscriber.recv().text() == "six");
    later.get();
    publisher.send("seven");
    CHECK(is_readable(fd, limit));
    std::promise<std::string> received;
    auto guard = rnet::on_match(subscriber, [](auto&) {});
    auto subscription = subscriber.on([&](auto& sample) { received.set_value(std::string(sample.text())); });
    CHECK(received.get_future().get() == "seven");
    // The descriptor shows that the subscriber was consumed.
    CHECK(is_readable(fd) && thrown([&] { subscriber.try_recv(); }) == Code::closed);
}

TEST("a large message stays readable with a descriptor") {
    Domain domain;
    auto a = domain.node("a"), b = domain.node("b");
    auto publisher = a.publisher("/t");
    auto subscriber = b.subscriber("/t");
    publisher.wait_for_subscribers();
    const int fd = rnet::fd(subscriber);
    const std::string large(100'000, 'x');
    publisher.send(large);
    CHECK(is_readable(fd, limit));
    auto kept = subscriber.try_recv();
    CHECK(kept && kept->text() == large);
    for (int n = 0; n < 100; ++n) {
        publisher.send("y");
        CHECK(subscriber.recv_for(limit).text() == "y");
    }
    CHECK(kept->text() == large);
}

TEST("a descriptor becomes readable when the subscriber or its node is closed, and stays open until freed") {
    Domain domain;
    auto node = domain.node();
    auto first = std::make_unique<rnet::Subscriber<>>(node.subscriber("/a"));
    auto second = node.subscriber("/b");
    const int a = rnet::fd(*first), b = rnet::fd(second);
    CHECK(drained(*first, a) && drained(second, b));
    first->close();
    CHECK(is_readable(a) && fcntl(a, F_GETFD) >= 0);
    CHECK(thrown([&] { first->try_recv(); }) == Code::closed);
    CHECK(thrown([&] { (void)rnet::fd(*first); }) == Code::closed);
    CHECK(!is_readable(b));
    node.close();
    CHECK(is_readable(b) && thrown([&] { second.try_recv(); }) == Code::closed);
    first.reset();
    CHECK(fcntl(a, F_GETFD) == -1);
}

TEST("many subscribers fit into one epoll") {
    constexpr int count = 16;
    Domain domain;
    auto a = domain.node("a"), b = domain.node("b");
    std::vector<rnet::Publisher<>> publishers;
    std::vector<rnet::Subscriber<>> subscribers;
    const int set = epoll_create1(EPOLL_CLOEXEC);
    for (int n = 0; n < count; ++n) {
        const auto topic = "/t" + std::to_string(n);
        publishers.push_back(a.publisher(topic));
        subscribers.push_back(b.subscriber(topic));
        epoll_event event{};
        event.events = EPOLLIN;
        event.data.u32 = static_cast<std::uint32_t>(n);
        CHECK(epoll_ctl(set, EPOLL_CTL_ADD, rnet::fd(subscribers.back()), &event) == 0);
    }
    for (auto& publisher : publishers) {
        publisher.wait_for_subscribers();
        publisher.send("x");
    }
    int received = 0;
    while (received < count) {
        epoll_event event{};
        CHECK(epoll_wait(set, &event, 1, 10'000) == 1);
        while (subscribers[event.data.u32].try_recv()) ++received;
    }
    close(set);
}

TEST("a subscriber with a descriptor is refused by a wait set, and belongs to its process") {
    Domain domain;
    auto node = domain.node();
    auto subscriber = node.subscriber("/t");
    (void)rnet::fd(subscriber);
    rnet::WaitSet waits(node);
    waits.attach(subscriber);
    CHECK(thrown([&] { waits.wait(); }) == Code::bad_value);
    int fd = -1;
    CHECK(rnet_subscriber_fd(nullptr, &fd, nullptr) == RNET_INVALID_ARGUMENT);
    CHECK(rnet_subscriber_fd(subscriber.handle(), nullptr, nullptr) == RNET_INVALID_ARGUMENT);
    auto plain = node.subscriber("/t");
    CHECK(in_child([&] {
              if (thrown([&] { (void)rnet::fd(subscriber); }) != Code::closed) return 1;
              if (thrown([&] { subscriber.try_recv(); }) != Code::closed) return 2;
              if (thrown([&] { subscriber.recv(); }) != Code::closed) return 3;
              return thrown([&] { (void)rnet::fd(plain); }) == Code::closed ? 0 : 4;
          }) == 0);
}

RNET_TEST_MAIN()
