// Destruction in every order from several threads, while callbacks run. What a callback reads is destroyed right after
// its object, so that a sanitizer finds a call that comes later.
#include "calls.hpp"
#include "domain.hpp"

#include <rnet/hooks.hpp>
#include <rnet/queue.hpp>
#include <rnet/service.hpp>
#include <rnet/state.hpp>
#include <rnet/timer.hpp>

#include <algorithm>
#include <functional>
#include <optional>
#include <random>
#include <vector>

using namespace check;
using rnet::Bytes;

namespace {

/// What the callbacks of one object read and write. Its memory is freed right after the object.
class Canary {
public:
    void touch() { text_ += text_.size() < 100 ? "x" : ""; }

private:
    std::string text_ = "alive";
};

/// An object, and what its callback uses.
struct Owned {
    std::function<void()> destroy;
    std::unique_ptr<Canary> canary = std::make_unique<Canary>();
};

/// What one thread does: it uses its objects, and destroys them in a random order.
class Owner {
public:
    template <class F>
    void add(F&& make) {
        auto owned = std::make_unique<Owned>();
        using Object = decltype(make(*owned->canary));
        auto object = std::make_shared<std::optional<Object>>(make(*owned->canary));
        owned->destroy = [object] { object->reset(); };
        objects_.push_back(std::move(owned));
    }
    void use(std::function<void()> act) { uses_.push_back(std::move(act)); }

    void run(std::minstd_rand& random) {
        for (unsigned round = random() % 40; round > 0; --round) {
            for (auto& use : uses_) use();
        }
        std::shuffle(objects_.begin(), objects_.end(), random);
        for (auto& object : objects_) {
            object->destroy();
            object.reset();
        }
    }

private:
    std::vector<std::unique_ptr<Owned>> objects_;
    std::vector<std::function<void()>> uses_;
};

/// Objects of all kinds of two nodes, used and destroyed by six threads.
void destroy_all(unsigned seed) {
    Domain domain;
    std::minstd_rand random(seed + 1);
    auto a = std::make_unique<rnet::Node>(domain.node("a"));
    auto b = std::make_unique<rnet::Node>(domain.node("b"));
    rnet::Node* const nodes[] = {a.get(), b.get()};
    const auto any = [&]() -> const rnet::Node& { return *nodes[random() % 2]; };
    std::vector<Owner> owners(5);

    auto publisher = std::make_shared<rnet::Publisher<>>(a->publisher("/t"));
    owners[0].add([&](Canary& canary) {
        return any().subscriber("/t", [&canary](auto&) { canary.touch(); });
    });
    owners[0].add([&](Canary& canary) {
        return rnet::on_match(*publisher, [&canary](auto&) { canary.touch(); });
    });
    owners[0].use([publisher] { (void)publisher->send(std::string_view("x"), std::nothrow); });
    owners[0].add([&](Canary&) { return std::exchange(publisher, nullptr); });

    const auto serving = [](Canary& canary) {
        return [&canary](const Number& number) {
            canary.touch();
            return number;
        };
    };
    owners[1].add([&](Canary& canary) {
        rnet::ServiceOptions options;
        options.at_once = 1 + random() % 2;
        // One canary for each thread that would write to it.
        if (options.at_once > 1) {
            return rnet::serve<Number, Number>(any(), "/service", [](const Number& n) { return n; }, options);
        }
        return rnet::serve<Number, Number>(any(), "/service", serving(canary), options);
    });
    rnet::ClientOptions soon;
    soon.timeout = 20ms;
    auto client = std::make_shared<rnet::Client<Number, Number>>(
        rnet::Client<Number, Number>::open(any(), "/service", soon));
    owners[2].use([client] { (void)client->call(Number{1}, std::nothrow); });
    owners[2].add([&](Canary&) { return std::exchange(client, nullptr); });

    owners[3].add([&](Canary& canary) {
        return rnet::pull<Number>(any(), "/jobs", [&canary](const Number&) { canary.touch(); });
    });
    owners[1].add([&](Canary& canary) {
        rnet::PusherOptions<Number> options;
        options.on_undelivered = [&canary](const Number&, const rnet::Error&) { canary.touch(); };
        auto pusher = rnet::Pusher<Number>::open(any(), "/jobs", options);
        for (int n = 0; n < 50; ++n) pusher.push(Number{1});
        return pusher;
    });
    auto puller = std::make_shared<rnet::Puller<Number>>(rnet::Puller<Number>::open(any(), "/jobs"));
    owners[4].use([puller] {
        auto job = puller->try_recv(std::nothrow);
        if (job && *job) (void)(*job)->ack(std::nothrow);
    });
    owners[4].add([&](Canary&) { return std::exchange(puller, nullptr); });

    auto state = std::make_shared<rnet::State>(rnet::State::open(*a));
    owners[3].add([&](Canary& canary) {
        return state->watch("/k").on([&canary](const rnet::Change&) { canary.touch(); }, random() % 2 == 0);
    });
    owners[3].use([state, n = 0]() mutable { (void)state->set("/k", ++n, {}, std::nothrow); });
    owners[3].add([&](Canary&) { return std::exchange(state, nullptr); });
    owners[4].add([&](Canary& canary) {
        rnet::TimerOptions options;
        options.urgent = random() % 2 == 0;
        return rnet::Timer(any(), 50us, [&canary](auto&) { canary.touch(); }, options);
    });
    owners[4].add([&](Canary& canary) {
        return rnet::on_node(any(), [&canary](auto&) { canary.touch(); });
    });

    std::vector<std::thread> threads;
    for (Owner& owner : owners) {
        threads.emplace_back([&owner, seed = random()] {
            std::minstd_rand own(static_cast<unsigned>(seed));
            owner.run(own);
        });
    }
    const auto pause = std::chrono::microseconds(random() % 4000);
    const unsigned what = random() % 4;
    threads.emplace_back([&a, &b, pause, what] {
        std::this_thread::sleep_for(pause);  // sleep: lets the others begin
        if (what & 1) a->close();
        a.reset();
        if (what & 2) b->close();
        b.reset();
    });
    for (auto& thread : threads) thread.join();
}

TEST("objects are destroyed in every order by several threads") {
    for (unsigned seed = 0; seed < 60; ++seed) destroy_all(seed);
}

TEST("two threads close each object, and its node, at the same time") {
    for (int round = 0; round < 30; ++round) {
        Domain domain;
        auto node = std::make_unique<rnet::Node>(domain.node());
        auto canary = std::make_unique<Canary>();
        auto service = rnet::serve<Number, Number>(*node, "/s", [at = canary.get()](const Number& number) {
            at->touch();
            return number;
        });
        auto client = rnet::Client<Number, Number>::open(*node, "/s");
        std::atomic<bool> freed{false};
        const auto calls = [&](auto close) {
            return [&, close] {
                (void)client.call(Number{1}, std::nothrow);
                close();
                // The first frees what the handler uses: each close has waited for it.
                if (!freed.exchange(true)) canary.reset();
            };
        };
        std::thread first(calls([&] { service.close(); }));
        std::thread second(calls([&] { node->close(); }));
        std::thread third(calls([&] { service.close(); }));
        first.join();
        second.join();
        third.join();
    }
}

}  // namespace

RNET_TEST_MAIN()
