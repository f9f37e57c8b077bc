// Coroutines of C++20: CXXFLAGS=-std=c++20
#include "topics.hpp"

#include <rnet/coroutine.hpp>

#include <stdexcept>
#include <string>
#include <vector>

namespace {

#if __cplusplus >= 202002L
rnet::Task receive(rnet::Subscriber<>& subscriber, std::vector<std::string>& received, int count) {
    for (int n = 0; n < count; ++n) received.emplace_back((co_await subscriber.next()).text());
}

rnet::Task receive_until_closed(rnet::Subscriber<Force>& subscriber, Code& ended) {
    try {
        for (;;) (void)co_await subscriber.next();
    } catch (const rnet::Error& error) {
        ended = error.code();
    }
}

rnet::Task spawn_two(rnet::EventLoop& loop, rnet::Subscriber<>& subscriber, std::vector<std::string>& received) {
    loop.spawn(receive(subscriber, received, 1));
    loop.spawn([](rnet::EventLoop&) -> rnet::Task { throw std::runtime_error("thrown by a task"); co_return; }(loop));
    co_return;
}

TEST("tasks receive from several subscribers") {
    Domain domain;
    auto node = domain.node();
    auto left = node.subscriber("/left", keep_all());
    auto right = node.subscriber("/right", keep_all());
    auto forces = node.subscriber<Force>("/force");
    std::vector<std::string> lefts, rights;
    Code ended = Code::ok;
    rnet::EventLoop loop;
    loop.spawn(receive(left, lefts, 50));
    loop.spawn(receive(right, rights, 50));
    loop.spawn(receive_until_closed(forces, ended));
    std::thread sender([&] {
        auto to_left = node.publisher("/left");
        auto to_right = node.publisher("/right");
        to_left.wait_for_subscribers();
        to_right.wait_for_subscribers();
        for (int n = 0; n < 50; ++n) {
            to_left.send("l" + std::to_string(n));
            to_right.send("r" + std::to_string(n));
            std::this_thread::sleep_for(1ms);  // sleep: lets both loops fall asleep between messages
        }
        forces.close();
    });
    loop.run();
    sender.join();
    CHECK(lefts.size() == 50 && lefts[49] == "l49" && rights.size() == 50 && rights[0] == "r0");
    CHECK(ended == Code::closed);
}

TEST("a task spawns others, and its exception leaves run()") {
    Domain domain;
    auto node = domain.node();
    auto publisher = node.publisher("/x");
    auto subscriber = node.subscriber("/x");
    publisher.wait_for_subscribers_for(1, limit);
    std::vector<std::string> received;
    rnet::EventLoop loop;
    loop.spawn(spawn_two(loop, subscriber, received));
    bool thrown = false;
    try {
        loop.run();
    } catch (const std::runtime_error&) {
        thrown = true;
    }
    publisher.send("one");
    loop.run();
    CHECK(thrown && received.size() == 1 && received[0] == "one");
    { auto unused = receive(subscriber, received, 1); }
    rnet::EventLoop abandoned;
    abandoned.spawn(receive(subscriber, received, 1));
}
#else
TEST("coroutines need C++20") { CHECK(__cplusplus < 202002L); }
#endif

}  // namespace

RNET_TEST_MAIN()
