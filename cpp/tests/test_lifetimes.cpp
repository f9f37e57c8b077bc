// The end of objects: closing from several threads and within callbacks, memory that is read meanwhile, temporaries.
#include "calls.hpp"
#include "domain.hpp"

#include <rnet/command.hpp>
#include <rnet/hooks.hpp>
#include <rnet/inspect.hpp>
#include <rnet/queue.hpp>
#include <rnet/service.hpp>
#include <rnet/state.hpp>
#include <rnet/timer.hpp>
#include <rnet/wait_set.hpp>

#include <array>
#include <fcntl.h>
#include <optional>
#include <poll.h>

using namespace check;
using rnet::Bytes;
using rnet::Code;

namespace {

/// A callback that runs until the test lets it end.
struct LongCall {
    Gate entered, may_end;
    std::atomic<bool> ended{false};

    void run() {
        entered.open();
        may_end.wait();
        ended = true;
    }
};

/// Whether `close` returns only once the call has ended; it is let end after `close` has begun.
template <class F>
bool waits_for(LongCall& call, F&& close) {
    std::atomic<bool> begun{false};
    auto closed = std::async(std::launch::async, [&] {
        begun = true;
        close();
        return call.ended.load();
    });
    while (!begun) std::this_thread::yield();
    closed.wait_for(20ms);  // Lets a close that does not wait return.
    call.may_end.open();
    return closed.get();
}

bool is_readable(int fd) {
    pollfd one{fd, POLLIN, 0};
    return poll(&one, 1, 0) == 1;
}

// A view of a temporary does not compile, or is a copy.
template <class T, class = void>
constexpr bool has_value_view = false;
template <class T>
constexpr bool has_value_view<T, std::void_t<decltype(*std::declval<T>())>> = true;
template <class T, class = void>
constexpr bool has_bytes = false;
template <class T>
constexpr bool has_bytes<T, std::void_t<decltype(std::declval<T>().bytes())>> = true;
template <class View>
constexpr bool is_owned = !std::is_reference_v<View> && !std::is_same_v<View, std::string_view>;

static_assert(has_value_view<rnet::Received<Bytes>&> && !has_value_view<rnet::Received<Bytes>>);
static_assert(has_value_view<rnet::Sample<Bytes>&> && !has_value_view<rnet::Sample<Bytes>>);
static_assert(has_value_view<rnet::Job<Bytes>&> && !has_value_view<rnet::Job<Bytes>>);
static_assert(has_value_view<rnet::Loan<Number>&> && !has_value_view<rnet::Loan<Number>>);
static_assert(has_bytes<rnet::Received<Text>&> && !has_bytes<rnet::Received<Text>>);
static_assert(has_bytes<rnet::Sample<Bytes>&> && !has_bytes<rnet::Sample<Bytes>>);
static_assert(has_bytes<rnet::Value&> && !has_bytes<rnet::Value>);
static_assert(is_owned<decltype(*std::declval<rnet::Received<Text>>())>);
static_assert(is_owned<decltype(*std::declval<rnet::Received<Number>>())>);
static_assert(is_owned<decltype(*std::declval<rnet::Sample<Number>>())>);
static_assert(is_owned<decltype(std::declval<rnet::Sample<Bytes>>().text())>);
static_assert(is_owned<decltype(std::declval<rnet::Value>().text())>);
static_assert(is_owned<decltype(std::declval<rnet::Node>().name())>);
static_assert(is_owned<decltype(std::declval<rnet::Service>().name())>);
static_assert(is_owned<decltype(std::declval<rnet::Client<Text, Text>>().name())>);
static_assert(is_owned<decltype(std::declval<rnet::Job<Text>>().pusher())>);
static_assert(is_owned<decltype(std::declval<rnet::Error>().topic())>);
static_assert(is_owned<decltype(std::declval<rnet::Result<int>>().error())>);
static_assert(is_owned<decltype(std::declval<rnet::Result<void>>().error())>);
static_assert(is_owned<decltype(std::declval<rnet::Result<int>>().value())>);
static_assert(is_owned<decltype(*std::declval<rnet::Result<int>>())>);

TEST("a subscription that is freed while its node is closed waits for the callback") {
    Domain domain;
    auto node = domain.node(), other = domain.node("other");
    LongCall call;
    auto subscription =
        std::make_unique<rnet::Subscription>(node.subscriber("/t", [&](auto&) { call.run(); }));
    auto publisher = other.publisher("/t");
    publisher.wait_for_subscribers();
    publisher.send("x");
    CHECK(call.entered.wait());
    std::thread first([&] { node.close(); });
    CHECK(eventually([&] {
        auto waited = subscription->wait_for_publishers(1, std::nothrow);
        return !waited && waited.error().code() == Code::closed;
    }));
    CHECK(waits_for(call, [&] { subscription.reset(); }));
    first.join();
}

TEST("a node that a second thread closes waits for the callbacks, too") {
    Domain domain;
    auto node = domain.node();
    LongCall call;
    rnet::TimerOptions once;
    once.once = true;
    rnet::Timer timer(node, 1ms, [&](auto&) { call.run(); }, once);
    CHECK(call.entered.wait());
    std::thread first([&] { node.close(); });
    CHECK(eventually([&] { return thrown([&] { rnet::Rate(node, 1.0); }) != Code::ok || timer.ticks() == 0; }));
    CHECK(waits_for(call, [&] { node.close(); }));
    first.join();
}

TEST("an object that its own callback closes ends for another thread when the callback has ended") {
    Domain domain;
    auto node = domain.node();
    {
        LongCall call;
        std::optional<rnet::Service> service;
        service.emplace(rnet::serve<Number, Number>(node, "/service", [&](const Number& number) {
            service->close();
            call.run();
            return number;
        }));
        auto client = rnet::Client<Number, Number>::open(node, "/service");
        auto pending = client.start(Number{1});
        CHECK(call.entered.wait());
        CHECK(waits_for(call, [&] { service.reset(); }));
    }
    {
        // Freed in its callback: only the node can be waited for.
        LongCall call;
        auto holder = std::make_shared<rnet::Timer>();
        Gate assigned;
        rnet::TimerOptions once;
        once.once = true;
        *holder = rnet::Timer(node, 1ms, [&, holder](auto&) {
            assigned.wait();
            holder->cancel();
            call.run();
        }, once);
        assigned.open();
        CHECK(call.entered.wait());
        CHECK(waits_for(call, [&] { node.close(); }));
    }
}

TEST("a call in flight does not let callbacks run after the end") {
    Domain domain;
    auto sender = domain.node("sender");
    auto publisher = sender.publisher("/t");
    std::atomic<bool> stop{false};
    std::thread sending([&] {
        while (!stop) (void)publisher.send(std::string_view("x"), std::nothrow);
    });
    for (int round = 0; round < 10; ++round) {
        auto node = domain.node();
        std::atomic<int> calls{0};
        std::atomic<bool> closed{false};
        std::atomic<int> late{0};
        auto subscription = node.subscriber("/t", [&](auto&) {
            ++calls;
            late += closed ? 1 : 0;
        });
        std::thread in_flight([&] { (void)subscription.wait_for_publishers(100, std::nothrow); });
        CHECK(eventually([&] { return calls > 0; }));
        node.close();
        closed = true;
        in_flight.join();
        CHECK(late == 0);
    }
    stop = true;
    sending.join();
}

TEST("callbacks of two nodes close each other") {
    Domain domain;
    auto a = domain.node("a"), b = domain.node("b");
    std::array<std::unique_ptr<rnet::Timer>, 2> timers;
    std::array<Gate, 2> entered;
    std::array<Gate, 2> ended;
    Gate assigned;
    rnet::TimerOptions once;
    once.once = true;
    const auto closer = [&](std::size_t own) {
        return [&, own](const rnet::Tick&) {
            assigned.wait();
            entered[own].open();
            entered[1 - own].wait();
            timers[1 - own].reset();
            ended[own].open();
        };
    };
    timers[0] = std::make_unique<rnet::Timer>(a, 1ms, closer(0), once);
    timers[1] = std::make_unique<rnet::Timer>(b, 1ms, closer(1), once);
    assigned.open();
    CHECK(ended[0].wait() && ended[1].wait());
    a.close();
    b.close();
}

TEST("handlers of two services close each other, and their node") {
    for (const bool whole_node : {false, true}) {
        Domain domain;
        auto node = domain.node(), caller = domain.node("caller");
        std::array<std::optional<rnet::Service>, 2> services;
        std::array<Gate, 2> entered, ended;
        Gate assigned;
        const auto serve = [&](std::size_t own, const char* name) {
            services[own].emplace(rnet::serve<Number, Number>(node, name, [&, own](const Number& number) {
                assigned.wait();
                entered[own].open();
                entered[1 - own].wait();
                whole_node ? node.close() : services[1 - own]->close();
                ended[own].open();
                return number;
            }));
        };
        serve(0, "/a");
        serve(1, "/b");
        assigned.open();
        auto to_a = rnet::Client<Number, Number>::open(caller, "/a");
        auto to_b = rnet::Client<Number, Number>::open(caller, "/b");
        auto first = to_a.start(Number{1}), second = to_b.start(Number{2});
        CHECK(ended[0].wait() && ended[1].wait());
        node.close();
    }
}

TEST("closing a node ends what its handlers and callbacks wait for") {
    Domain domain;
    auto node = domain.node(), caller = domain.node("caller");
    auto silent = node.subscriber("/silent");
    auto watch = rnet::State::open(node).watch("/silent");
    auto worker = rnet::Puller<Number>::open(node, "/silent");
    std::array<Gate, 3> entered;
    std::array<std::atomic<bool>, 3> is_closed{};
    const auto wait = [&](std::size_t at, auto&& receive) {
        entered[at].open();
        is_closed[at] = thrown(receive) == Code::closed;
    };
    auto service = rnet::serve<Number, Number>(node, "/a", [&](const Number& n) {
        wait(0, [&] { silent.recv(); });
        return n;
    });
    auto other = rnet::serve<Number, Number>(node, "/b", [&](const Number& n) {
        wait(1, [&] { worker.recv(); });
        return n;
    });
    rnet::TimerOptions once;
    once.once = true;
    rnet::Timer timer(node, 1ms, [&](auto&) { wait(2, [&] { watch.recv(); }); }, once);
    auto a = rnet::Client<Number, Number>::open(caller, "/a"), b = rnet::Client<Number, Number>::open(caller, "/b");
    auto first = a.start(Number{1}), second = b.start(Number{2});
    for (auto& gate : entered) CHECK(gate.wait());
    node.close();
    for (auto& closed : is_closed) CHECK(closed);
}

TEST("a loop over jobs ends each job before it receives the next") {
    Domain domain;
    auto node = domain.node();
    auto jobs = rnet::Pusher<Number>::open(node, "/jobs");
    auto worker = rnet::Puller<Number>::open(node, "/jobs");
    jobs.push(Number{1});
    jobs.push(Number{2});
    int received = 0;
    for (auto& job : worker) {  // The first job is not acknowledged.
        if (++received == 2) {
            job.ack();
            break;
        }
    }
    CHECK(received == 2 && eventually([&] { return jobs.stats().done == 1; }));
}

TEST("a time of 0 is refused, or is over, and never the default") {
    Domain domain;
    auto node = domain.node();
    rnet::PutOptions gone;
    gone.ttl = 0ns;
    auto state = rnet::State::open(node);
    CHECK(thrown([&] { state.set("/key", 1, gone); }) == Code::bad_value && !state.get("/key"));
    rnet::PublisherOptions options;
    options.lifespan = 0ns;
    CHECK(thrown([&] { node.publisher("/t", options); }) == Code::bad_qos);
    options.lifespan = {};
    options.reliable = true;
    options.on_full = rnet::OnFull::detach;
    options.full_timeout = 0ns;
    CHECK(thrown([&] { node.publisher("/t", options); }) == Code::bad_qos);
    rnet::CommandOptions command;
    command.deadline = 0ns;
    const auto apply = [](const Number&) {};
    CHECK(thrown([&] {
        rnet::Command::receive<Number>(node, "/cmd", apply, rnet::Fallback<Number>::hold(), command);
    }) == Code::bad_value);
    auto worker = rnet::Puller<Number>::open(node, "/jobs");
    CHECK(thrown([&] { worker.recv_for(-1ms); }) == Code::timeout);
}

TEST("a callback may own the object that calls it") {
    Domain domain;
    auto node = domain.node();
    auto token = std::make_shared<int>(0);
    auto service = std::make_shared<std::optional<rnet::Service>>();
    service->emplace(rnet::serve<Number, Number>(node, "/self", [service, token](const Number& n) { return n; }));
    auto timer = std::make_shared<rnet::Timer>();
    *timer = rnet::Timer(node, 1h, [timer, token](auto&) {});
    service.reset();
    timer.reset();
    CHECK(token.use_count() == 3);
    node.close();
    CHECK(token.use_count() == 1);
}

TEST("a detached callback ends with its node") {
    Domain domain;
    auto node = domain.node();
    auto token = std::make_shared<int>(0);
    std::atomic<int> calls{0};
    rnet::on_node(node, [&calls, token](auto&) { ++calls; }).detach();
    {
        auto other = domain.node("other");
        CHECK(eventually([&] { return calls == 1; }));
    }
    CHECK(eventually([&] { return calls == 2; }) && token.use_count() == 2);
    node.close();
    CHECK(token.use_count() == 1);
}

TEST("bytes that are read stay valid when another thread closes their object") {
    Domain domain;
    auto node = domain.node(), worker = domain.node("worker");
    const std::string large(100'000, 'x');
    auto pusher = rnet::Pusher<Bytes>::open(node, "/jobs");
    auto puller = rnet::Puller<Bytes>::open(worker, "/jobs");
    pusher.push(rnet::bytes_of(large));
    auto job = puller.recv_for(limit);
    std::thread([&] { worker.close(); }).join();
    CHECK(rnet::text_of(*job) == large);
    CHECK(rnet_job_data(job.handle()).len == 0);
    CHECK(rnet::text_of(*job) == large);
    CHECK(thrown([&] { job.ack(); }) == Code::closed);

    rnet::DomainOptions options;
    options.domain = domain.name;
    options.dir = domain.dir;
    auto seen = rnet::Domain::open(options);
    auto follower = seen.follow("/t");
    auto watcher = seen.watch_nodes();
    auto publisher = node.publisher("/t");
    CHECK(eventually([&] {
        publisher.send(large);
        return follower.try_recv().has_value();
    }));
    publisher.send(large);
    const rnet_followed_message* message = nullptr;
    const rnet_watched_node* joined = nullptr;
    CHECK(rnet_follower_recv(follower.handle(), RNET_FOREVER, &message, nullptr) == RNET_OK);
    CHECK(rnet_node_watcher_recv(watcher.handle(), RNET_FOREVER, &joined, nullptr) == RNET_OK);
    std::thread([&] {
        follower.close();
        watcher.close();
    }).join();
    CHECK(rnet::text_of(rnet::detail::view_of(message->data)) == large && std::string(message->topic) == "/t");
    CHECK(std::string(joined->node) == "/test");
    CHECK(thrown([&] { follower.recv(); }) == Code::closed);
    CHECK(thrown([&] { watcher.recv(); }) == Code::closed);
}

TEST("the descriptor of a watch becomes readable when it is closed, and stays open until freed") {
    Domain domain;
    auto node = domain.node();
    const auto state = rnet::State::open(node);
    auto first = std::make_unique<rnet::Watch>(state.watch("/a"));
    auto second = state.watch("/b");
    const int a = first->fd(), b = second.fd();
    CHECK(!first->try_recv() && !second.try_recv());
    CHECK(eventually([&] { return !is_readable(a) && !is_readable(b); }));
    state.set("/a", 1);
    CHECK(eventually([&] { return is_readable(a); }));
    CHECK(first->recv_for(limit).get<int>() == 1);
    first->close();
    CHECK(is_readable(a) && fcntl(a, F_GETFD) >= 0);
    CHECK(thrown([&] { first->try_recv(); }) == Code::closed);
    CHECK(!is_readable(b));
    node.close();
    CHECK(is_readable(b) && thrown([&] { second.try_recv(); }) == Code::closed);
    first.reset();
    CHECK(fcntl(a, F_GETFD) == -1 && fcntl(b, F_GETFD) >= 0);
}

TEST("a wait set finds a watch with a change") {
    Domain domain;
    auto node = domain.node();
    const auto state = rnet::State::open(node);
    auto watch = state.watch("/a"), polled = state.watch("/a");
    rnet::WaitSet waits(node);
    waits.attach(watch);
    CHECK(waits.wait_for(1ms) == 0);
    std::thread writer([&] { state.set("/a", 7); });
    CHECK(waits.wait_for(limit) == 1 && waits.is_ready(watch));
    writer.join();
    CHECK(watch.recv().get<int>() == 7 && waits.wait_for(0s) == 0);
    (void)polled.fd();
    waits.attach(polled);
    CHECK(thrown([&] { waits.wait(); }) == Code::bad_value);
    CHECK(rnet_wait_set_attach_watch(waits.handle(), nullptr, nullptr) == RNET_INVALID_ARGUMENT);
}

TEST("closing a driver ends its renewal at once") {
    Domain domain;
    auto node = domain.node("receiver"), other = domain.node("driver");
    LongCall call;
    rnet::CommandOptions patient;
    patient.deadline = 1h;
    auto fallback = rnet::Fallback<Number>::handler([](rnet::FallbackReason) {});
    auto command =
        rnet::Command::receive<Number>(node, "/cmd", [&](const Number&) { call.run(); }, fallback, patient);
    rnet::DriverOptions options;
    options.lease = 1h;
    auto driver = rnet::Driver<Number>::take(other, "/cmd", options);
    driver.send(Number{1});
    CHECK(call.entered.wait());
    // The receiver answers when its function has returned.
    Gate renewing;
    auto renewed = std::async(std::launch::async, [&] {
        renewing.open();
        return thrown([&] { driver.renew(); });
    });
    CHECK(renewing.wait());
    std::this_thread::sleep_for(5ms);  // sleep: lets the renewal begin
    driver.close();
    CHECK(renewed.get() == Code::closed && !call.ended);
    call.may_end.open();
}

}  // namespace

RNET_TEST_MAIN()
