// Topics: publishers, subscribers, samples, loans and callbacks.
#include "topics.hpp"

#include <algorithm>
#include <atomic>
#include <future>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>
#if __cplusplus >= 202002L
#include <ranges>
#endif

namespace {

/// Allocations of this thread.
[[maybe_unused]] thread_local std::uint64_t allocations = 0;

static_assert(!std::is_copy_constructible_v<rnet::Node> && std::is_nothrow_move_constructible_v<rnet::Node>);
static_assert(!std::is_copy_constructible_v<rnet::Sample<>> && std::is_move_assignable_v<rnet::Sample<Force>>);
static_assert(!std::is_copy_constructible_v<rnet::SampleView<>>);
static_assert(!rnet::detail::is_plain<int>);
#if __cplusplus >= 202002L
static_assert(std::ranges::input_range<rnet::Subscriber<Force>>);
static_assert(std::ranges::input_range<rnet::Subscriber<>>);
#endif

TEST("bytes arrive with their stamps") {
    Domain domain;
    auto node = domain.node();
    auto publisher = node.publisher("/raw");
    auto subscriber = node.subscriber("/raw");
    publisher.wait_for_subscribers_for(1, limit);
    subscriber.wait_for_publishers_for(1, limit);
    CHECK(publisher.subscriber_count() == 1 && subscriber.publisher_count() == 1);
    CHECK(!subscriber.try_recv() && !subscriber.try_recv_view());
    publisher.send("one");
    publisher.send(std::vector<std::uint8_t>{1, 2, 3});
    rnet::Meta meta;
    meta.source_ns = 5;
    meta.correlation = 6;
    publisher.send(rnet::bytes_of("three"), meta);
    publisher.send(Bytes());

    auto first = subscriber.recv_for(limit);
    auto second = subscriber.recv_for(limit);
    CHECK(first.text() == "one" && rnet::text_of(*first) == "one" && first->size() == 3);
    CHECK(second.bytes()[2] == 3 && second.seq() == first.seq() + 1 && second.publisher() == first.publisher());
    CHECK(first.taken_ns() >= first.sent_ns() && first.sent_ns() > 0);
    CHECK(first.latency().count() == static_cast<std::int64_t>(first.taken_ns() - first.sent_ns()));
    CHECK(!first.source_ns() && !first.correlation() && !first.is_last_will());
    auto third = subscriber.recv_view_for(limit);
    CHECK(third.text() == "three" && third.source_ns() == 5 && third.correlation() == 6u);
    CHECK(third.topic() == "/raw" && third.node() == node.name());
    CHECK(subscriber.recv_for(limit)->empty());
    CHECK(thrown([&] { (void)subscriber.recv_for(1ms); }) == Code::timeout);
    CHECK(thrown([&] { (void)subscriber.recv_view_for(0ms); }) == Code::timeout);
    CHECK(subscriber.lost().total() == 0);
}

TEST("closing the node ends a subscription's wait for publishers") {
    Domain domain;
    auto node = domain.node();
    auto subscription = node.subscriber("/none", [](auto&) {});
    auto waited = std::async(std::launch::async, [&] {
        return thrown([&] { subscription.wait_for_publishers(); });
    });
    node.close();
    CHECK(waited.wait_for(limit) == std::future_status::ready);
    CHECK(waited.get() == Code::closed);
}

TEST("loans are filled in place") {
    Domain domain;
    auto node = domain.node();
    auto publisher = node.publisher("/loan", reliable_publisher());
    auto subscriber = node.subscriber("/loan", reliable());
    publisher.wait_for_subscribers_for(1, limit);
    for (std::size_t len : {std::size_t{3}, std::size_t{100'000}}) {
        auto loan = publisher.loan(len);
        CHECK(loan.size() == len);
        std::fill(loan.span().begin(), loan.span().end(), std::uint8_t{7});
        loan[0] = 8;
        loan.send();
        CHECK(loan.span().empty());
        CHECK(thrown([&] { loan.send(); }) == Code::closed);
        auto sample = subscriber.recv_view_for(limit);
        CHECK(sample->size() == len && (*sample)[0] == 8 && (*sample)[len - 1] == 7);
    }
    { auto unsent = publisher.loan(100'000); }
    CHECK(!subscriber.try_recv());

    auto forces = node.publisher<Force>("/force");
    auto received = node.subscriber<Force>("/force");
    forces.wait_for_subscribers_for(1, limit);
    auto force = forces.loan();
    force->newton[0] = 1.5;
    (*force).time_ns = 3;
    force.send();
    auto sample = received.recv_for(limit);
    CHECK(sample->newton[0] == 1.5 && sample->time_ns == 3);
}

TEST("a loan is sent with metadata, and cut to what was used") {
    Domain domain;
    auto node = domain.node();
    auto publisher = node.publisher("/loan", reliable_publisher());
    auto subscriber = node.subscriber("/loan", reliable());
    publisher.wait_for_subscribers_for(1, limit);
    for (std::size_t len : {std::size_t{100}, std::size_t{100'000}}) {
        auto loan = publisher.loan(len);
        const auto* memory = loan.data();
        loan.truncate(len / 2);
        CHECK(loan.size() == len / 2 && loan.data() == memory);
        CHECK(thrown([&] { loan.truncate(len); }) == Code::bad_value && loan.size() == len / 2);
        loan[len / 2 - 1] = 5;
        loan.send({1'234, 7});
        CHECK(thrown([&] { loan.truncate(1); }) == Code::closed);
        CHECK(thrown([&] { loan.send({1, 1}); }) == Code::closed);
        auto sample = subscriber.recv_view_for(limit);
        CHECK(sample.bytes().size() == len / 2 && sample.bytes()[len / 2 - 1] == 5);
        CHECK(sample.source_ns() == 1'234 && sample.correlation() == 7u);
    }
    // A plain message has one length: a shorter one is refused, and the loan stays.
    auto forces = node.publisher<Force>("/force");
    auto force = forces.loan();
    CHECK(rnet_loan_truncate(force.handle(), 1, nullptr) == RNET_OK);
    CHECK(thrown([&] { force.send(); }) == Code::bad_value && rnet_loan_data(force.handle()).len == 1);
}

TEST("a loan stays valid when its publisher is closed") {
    Domain domain;
    auto node = domain.node();
    auto publisher = node.publisher("/loan");
    auto first = publisher.loan(100'000);
    auto second = publisher.loan(100'000);
    std::thread([&] { node.close(); }).join();
    std::fill(first.span().begin(), first.span().end(), std::uint8_t{1});
    CHECK(thrown([&] { first.send(); }) == Code::closed);
    CHECK(thrown([&] { publisher.send("x"); }) == Code::closed);
    { auto dropped = std::move(first); }
    std::fill(second.span().begin(), second.span().end(), std::uint8_t{2});
    CHECK(second[99'999] == 2);
}

TEST("a kept sample outlives its subscriber, and is not copied if it is large") {
    Domain domain;
    auto node = domain.node();
    auto publisher = node.publisher("/keep");
    auto subscriber = std::make_unique<rnet::Subscriber<>>(node.subscriber("/keep"));
    publisher.wait_for_subscribers_for(1, limit);
    publisher.send("small");
    publisher.send(std::vector<std::uint8_t>(50'000, 3));
    auto small = subscriber->recv_view_for(limit).keep();
    auto view = subscriber->recv_view_for(limit);
    const auto* at = view.bytes().data();
    auto large = view.keep();
    CHECK(large.bytes().data() == at);
    auto again = view.keep(std::nothrow);
    CHECK(!again && again.error().code() == Code::invalid_argument);
    subscriber.reset();
    node.close();
    auto moved = std::move(large);
    CHECK(small.text() == "small" && moved.bytes()[49'999] == 3 && moved->size() == 50'000);
    std::thread([kept = std::move(moved)] { CHECK(kept.bytes()[0] == 3); }).join();
}

TEST("a view stays valid when another thread closes the node") {
    Domain domain;
    auto node = domain.node();
    auto other = domain.node("other");
    auto publisher = other.publisher("/view");
    auto subscriber = node.subscriber("/view");
    publisher.wait_for_subscribers_for(1, limit);
    publisher.send(std::vector<std::uint8_t>(50'000, 3));
    auto view = subscriber.recv_view_for(limit);
    std::thread([&] {
        node.close();
        subscriber.close();
    }).join();
    CHECK(view.bytes()[49'999] == 3);
    CHECK(std::count(view.bytes().begin(), view.bytes().end(), 3) == 50'000);
    auto kept = view.keep();
    CHECK(thrown([&] { (void)subscriber.recv(); }) == Code::closed);
    CHECK(kept.bytes()[0] == 3);
}

TEST("the subscriber's own thread closes it at once") {
    Domain domain;
    auto node = domain.node();
    auto publisher = node.publisher("/view");
    auto subscriber = node.subscriber("/view");
    publisher.wait_for_subscribers_for(1, limit);
    publisher.send("x");
    (void)subscriber.recv_view_for(limit);
    subscriber.close();
    CHECK(eventually([&] { return publisher.subscriber_count() == 0; }));
}

TEST("another thread closes the subscriber at any moment") {
    Domain domain;
    auto node = domain.node();
    auto publisher = node.publisher("/view");
    const std::vector<std::uint8_t> message(50'000, 3);
    for (int turn = 0; turn < 100; ++turn) {
        auto subscriber = node.subscriber("/view");
        publisher.wait_for_subscribers_for(1, limit);
        std::atomic<int> right{0}, wrong{0};
        std::promise<Code> ended;
        std::thread reader([&] {
            for (;;) {
                auto view = subscriber.recv_view(std::nothrow);
                if (!view) return ended.set_value(view.error().code());
                const Bytes bytes = view->bytes();
                ++(std::count(bytes.begin(), bytes.end(), 3) == 50'000 ? right : wrong);
            }
        });
        for (int n = 0; n < 3; ++n) publisher.send(message);
        CHECK(eventually([&] { return right + wrong > 0; }));
        publisher.send(message);
        subscriber.close();
        auto code = ended.get_future();
        CHECK(code.wait_for(limit) == std::future_status::ready && code.get() == Code::closed);
        reader.join();
        CHECK(wrong == 0 && right > 0);
        CHECK(eventually([&] { return publisher.subscriber_count() == 0; }));
    }
}

TEST("latest skips older messages") {
    Domain domain;
    auto node = domain.node();
    auto publisher = node.publisher<Force>("/latest");
    auto subscriber = node.subscriber<Force>("/latest");
    publisher.wait_for_subscribers_for(1, limit);
    CHECK(!subscriber.try_latest());
    for (std::uint64_t n = 1; n <= 5; ++n) publisher.send({{}, n});
    CHECK(subscriber.latest_for(limit).operator*().time_ns == 5);
    CHECK(thrown([&] { (void)subscriber.latest_for(1ms); }) == Code::timeout);
    publisher.send({{}, 6});
    CHECK(subscriber.latest()->time_ns == 6);
}

TEST("a loop receives until the node is closed") {
    Domain domain;
    auto node = domain.node();
    auto other = domain.node("other");
    auto publisher = other.publisher<Force>("/loop");
    auto wrong = other.publisher<LevelV1>("/loop");  // Its error does not end the loop.
    auto subscriber = node.subscriber<Force>("/loop", keep_all());
    publisher.wait_for_subscribers_for(1, limit);
    std::vector<rnet::Sample<Force>> kept;
    std::atomic<bool> received{false};
    std::thread sender([&] {
        for (std::uint64_t n = 0; n < 100; ++n) publisher.send({{}, n});
        eventually([&] { return received.load(); });
        node.close();
    });
    std::uint64_t next = 0;
    for (auto& sample : subscriber) {
        CHECK(sample->time_ns == next++);
        if (next % 10 == 0) kept.push_back(sample.keep());
        if (next == 100) received = true;
    }
    sender.join();
    CHECK(next == 100 && kept.size() == 10 && kept[9]->time_ns == 99);
    CHECK(subscriber.begin() == subscriber.end());
}

TEST("callbacks receive, and their exceptions end in them") {
    Domain domain;
    auto node = domain.node();
    auto publisher = node.publisher<Force>("/callback", reliable_publisher());
    std::atomic<std::uint64_t> sum{0}, errors{0};
    auto token = std::make_shared<int>(0);
    {
        auto subscription = node.subscriber<Force>(
            "/callback",
            [&, token](rnet::SampleView<Force>& force) {
                sum += force->time_ns;
                if (force->time_ns == 2) throw std::runtime_error("two");
                if (force->time_ns == 3) throw 3;
            },
            reliable());
        subscription.wait_for_publishers_for(1, limit);
        publisher.wait_for_subscribers_for(1, limit);
        for (std::uint64_t n = 1; n <= 4; ++n) publisher.send({{}, n});
        CHECK(eventually([&] { return sum == 10; }));
        CHECK(token.use_count() == 2);
    }
    CHECK(token.use_count() == 1);

    auto subscriber = node.subscriber<LevelV1>("/callback");
    auto failing = subscriber.on([](const rnet::SampleView<LevelV1>&) {},
                                 [&](const rnet::Error& error) {
                                     if (error.code() == Code::incompatible_type && error.topic() == "/callback") ++errors;
                                     throw std::runtime_error("in on_error");
                                 });
    CHECK(eventually([&] { return errors == 1; }));
    CHECK(thrown([&] { (void)subscriber.recv(); }) == Code::closed);
    auto twice = subscriber.on([token](auto&) {}, std::nothrow);
    CHECK(!twice && twice.error().code() == Code::closed && token.use_count() == 1);
}

TEST("a callback keeps samples, publishes, and closes its own subscription") {
    Domain domain;
    auto node = domain.node();
    auto ping = node.publisher("/ping");
    auto pong = node.publisher("/pong");
    auto answers = node.subscriber("/pong");
    pong.wait_for_subscribers_for(1, limit);
    std::promise<rnet::Sample<>> kept;
    std::optional<rnet::Subscription> subscription;
    std::promise<void> ready;
    auto is_ready = ready.get_future().share();
    subscription.emplace(node.subscriber("/ping", [&, is_ready](auto& sample) {
        is_ready.wait();
        pong.send(*sample);
        kept.set_value(sample.keep());
        subscription->close();
    }));
    ready.set_value();
    ping.wait_for_subscribers_for(1, limit);
    ping.send("hello");
    CHECK(answers.recv_for(limit).text() == "hello");
    CHECK(kept.get_future().get().text() == "hello");
    CHECK(eventually([&] { return ping.subscriber_count() == 0; }));
}

TEST("closing ends a wait of another thread") {
    Domain domain;
    auto node = domain.node();
    auto subscriber = node.subscriber("/wait");
    auto publisher = node.publisher("/nobody");
    std::promise<Code> received, waited;
    std::thread receiving([&] { received.set_value(thrown([&] { (void)subscriber.recv(); })); });
    std::thread waiting([&] { waited.set_value(thrown([&] { publisher.wait_for_subscribers(); })); });
    std::this_thread::sleep_for(50ms);  // sleep: lets the threads begin to wait
    subscriber.close();
    node.close();
    CHECK(received.get_future().get() == Code::closed && waited.get_future().get() == Code::closed);
    receiving.join();
    waiting.join();
    node.close();
    CHECK(thrown([&] { (void)node.publisher("/late"); }) == Code::closed);
    CHECK(thrown([&] { (void)node.now(); }) == Code::closed);
    CHECK(thrown([&] { (void)subscriber.lost(); }) == Code::closed);
    publisher.close(1s);
}

TEST("a second thread gets wrong_thread") {
    Domain domain;
    auto node = domain.node();
    auto publisher = node.publisher("/mine");
    auto subscriber = node.subscriber("/other");
    std::thread receiving([&] { (void)subscriber.recv(std::nothrow); });
    std::thread waiting([&] { (void)publisher.wait_for_subscribers(1, std::nothrow); });
    CHECK(eventually([&] {
        auto sent = publisher.send("x", std::nothrow);
        return !sent && sent.error().code() == Code::wrong_thread;
    }));
    CHECK(eventually([&] {
        auto taken = subscriber.try_recv(std::nothrow);
        return !taken && taken.error().code() == Code::wrong_thread;
    }));
    node.close();
    receiving.join();
    waiting.join();
}

TEST("errors are results without exceptions") {
    Domain domain;
    auto bad = rnet::Node::create("a b", domain.options(), std::nothrow);
    CHECK(!bad && bad.error().code() == Code::bad_name && rnet::name_of(bad.error().code()) == "bad_name");
    auto node = rnet::Node::create("good", domain.options(), std::nothrow);
    CHECK(node && node->name() == "/good" && node->domain() == domain.name && node->now(std::nothrow)->count() > 0);
    auto publisher = node->publisher("no good", std::nothrow);
    CHECK(!publisher && publisher.error().code() == Code::bad_name);
    rnet::PublisherOptions options;
    options.on_full = rnet::OnFull::refuse;
    auto contradictory = node->publisher("/x", options, std::nothrow);
    CHECK(!contradictory && contradictory.error().code() == Code::bad_qos);
    auto waited = node->publisher("/x").wait_for_subscribers_for(1, 1ms, std::nothrow);
    CHECK(!waited && waited.error().code() == Code::timeout && waited.error().topic() == "/x");
    const rnet::Error copy = waited.error();
    CHECK(std::string(copy.what()).find("/x") != std::string::npos);
}

TEST("names are replaced and prefixed") {
    Domain domain;
    auto options = domain.options();
    options.name_space = "robot";
    options.remaps = {{"/scan", "/front/scan"}};
    options.sim_time = false;
    options.tune_threads = false;
    rnet::Node node("lidar", options);
    CHECK(std::string(node.name()).find("robot") != std::string::npos);
    auto publisher = node.publisher("/scan");
    auto subscriber = domain.node("reader").subscriber("/front/scan");
    publisher.wait_for_subscribers_for(1, limit);
}

TEST("late subscribers receive what is kept for them") {
    Domain domain;
    auto node = domain.node();
    rnet::PublisherOptions options;
    options.transient_local = 1;
    options.urgent = true;
    options.liveliness_lease = 10s;
    auto publisher = node.publisher<Force>("/map", options);
    publisher.send({{}, 1});
    publisher.send({{}, 2});
    publisher.assert_alive();
    rnet::SubscriberOptions late;
    late.transient_local = true;
    late.lane = rnet::Lane::urgent;
    late.wait = rnet::Wait::block;
    CHECK(node.subscriber<Force>("/map", late).recv_for(limit)->time_ns == 2);
}

TEST("a callback closes its own node") {
    Domain domain;
    auto node = domain.node();
    auto other = domain.node("other");
    auto publisher = other.publisher("/close");
    std::promise<void> closed;
    auto subscription = node.subscriber("/close", [&](auto&) {
        node.close();
        closed.set_value();
    });
    publisher.wait_for_subscribers_for(1, limit);
    publisher.send("x");
    closed.get_future().get();
    CHECK(thrown([&] { (void)node.now(); }) == Code::closed);
}

TEST("a full subscriber refuses, and unread messages are reported at the end") {
    Domain domain;
    auto node = domain.node();
    rnet::PublisherOptions options;
    options.reliable = true;
    options.on_full = rnet::OnFull::refuse;
    auto publisher = node.publisher("/full", options);
    auto subscriber = node.subscriber("/full", reliable());
    publisher.wait_for_subscribers_for(1, limit);
    publisher.send(std::vector<std::uint8_t>(100'000, 1));
    CHECK(thrown([&] { publisher.close(1ms); }) == Code::timeout);
    CHECK(thrown([&] { publisher.send("x"); }) == Code::closed);

    auto next = node.publisher("/full", options);
    next.wait_for_subscribers_for(1, limit);
    CHECK(eventually([&] {
        auto sent = next.send(std::string(4000, 'a'), std::nothrow);
        return !sent && sent.error().code() == Code::full;
    }));
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST("sending and receiving views allocates nothing") {
    Domain domain;
    auto node = domain.node();
    auto publisher = node.publisher<Force>("/plain", reliable_publisher());
    auto subscriber = node.subscriber<Force>("/plain", reliable());
    auto raw = node.subscriber("/plain", reliable());
    publisher.wait_for_subscribers_for(2, limit);
    std::uint64_t before = 0;
    for (std::uint64_t n = 0; n < 2000; ++n) {
        if (n == 1000) before = allocations;
        publisher.send({{}, n});
        CHECK(subscriber.recv_view_for(limit)->time_ns == n);
        CHECK(raw.try_recv_view()->bytes().size() == sizeof(Force));
    }
    CHECK(allocations == before);
}
#endif

}  // namespace

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_calloc(std::size_t, std::size_t);

void* malloc(std::size_t len) {
    ++allocations;
    return __libc_malloc(len);
}
void* realloc(void* memory, std::size_t len) {
    ++allocations;
    return __libc_realloc(memory, len);
}
void* calloc(std::size_t count, std::size_t len) {
    ++allocations;
    return __libc_calloc(count, len);
}
}
#endif

RNET_TEST_MAIN()
