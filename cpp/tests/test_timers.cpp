// Timers, rates and clocks.
#include "domain.hpp"

#include <rnet/timer.hpp>

#include <future>
#include <memory>
#include <set>
#include <stdexcept>

using namespace check;
using rnet::Code;

namespace {

/// Publishes simulated time.
class Clock {
public:
    explicit Clock(const rnet::Node& node) {
        rnet_type* type = nullptr;
        CHECK(rnet_type_builtin("rnet.msgs.Clock", &type, nullptr) == RNET_OK);
        rnet_publisher_options options{};
        options.struct_size = sizeof options;
        options.message_type = type;
        rnet_publisher* made = nullptr;
        CHECK(rnet_publisher_new(node.handle(), "/clock", &options, &made, nullptr) == RNET_OK);
        rnet_type_free(type);
        publisher_.reset(made);
        CHECK(rnet_publisher_wait_for_subscribers(made, 1, 10'000'000'000, nullptr) == RNET_OK);
    }
    void set(std::uint64_t ns) {
        std::string bytes(1, '\x08');
        for (; ns >= 0x80; ns >>= 7) bytes.push_back(static_cast<char>(ns | 0x80));
        bytes.push_back(static_cast<char>(ns));
        const auto* data = reinterpret_cast<const std::uint8_t*>(bytes.data());
        CHECK(rnet_publisher_send(publisher_.get(), data, bytes.size(), nullptr) == RNET_OK);
    }

private:
    rnet::detail::Handle<rnet_publisher, rnet_publisher_free> publisher_;
};

}  // namespace

TEST("a timer ticks with ascending numbers, until it is cancelled") {
    Domain domain;
    auto node = domain.node();
    std::atomic<std::uint64_t> last{0};
    std::atomic<bool> ascending{true};
    std::atomic<int> calls{0};
    rnet::Timer timer(node, 1ms, [&](const rnet::Tick& tick) {
        ascending = ascending && tick.number > last && tick.due_ns > 0 && tick.late.count() >= 0;
        last = tick.number;
        ++calls;
    });
    CHECK(eventually([&] { return calls >= 5; }));
    CHECK(timer.ticks() >= 4);
    timer.cancel();
    const int after = calls;
    CHECK(timer.ticks() == 0 && timer.missed() == 0);
    std::this_thread::sleep_for(5ms);  // sleep: lets ticks pass
    CHECK(calls == after && ascending);
    timer.cancel();
}

TEST("a timer that is set once ticks once") {
    Domain domain;
    auto node = domain.node();
    std::atomic<int> calls{0};
    rnet::TimerOptions options;
    options.once = true;
    rnet::Timer once(node, 1ms, [&](auto&) { ++calls; }, options);
    std::atomic<int> others{0};
    rnet::Timer other(node, 1ms, [&](auto&) { ++others; });
    CHECK(eventually([&] { return others >= 10; }));
    CHECK(calls == 1);
}

TEST("an urgent timer runs while the bulk lane is busy") {
    Domain domain;
    auto node = domain.node();
    std::promise<void> release;
    auto released = release.get_future().share();
    std::atomic<int> blocked{0}, urgent{0};
    rnet::Timer slow(node, 1ms, [&](auto&) {
        ++blocked;
        released.wait();
    });
    CHECK(eventually([&] { return blocked == 1; }));
    rnet::TimerOptions options;
    options.urgent = true;
    rnet::Timer fast(node, 1ms, [&](auto&) { ++urgent; }, options);
    CHECK(eventually([&] { return urgent >= 3; }));
    release.set_value();
    CHECK(eventually([&] { return slow.missed() > 0; }));
}

TEST("an exception in a timer is counted, and it ticks on") {
    Domain domain;
    auto node = domain.node();
    rnet::Timer timer(node, 1ms, [](auto&) { throw std::runtime_error("on purpose"); });
    CHECK(eventually([&] { return rnet_node_callback_errors(node.handle()) >= 2; }));
    rnet::Timer other(node, 1ms, [](auto&) { throw 7; });
}

TEST("a timer that cancels itself or closes its node does not block") {
    Domain domain;
    auto node = domain.node();
    auto holder = std::make_unique<rnet::Timer>();
    std::promise<void> ready, cancelled, closed;
    auto start = ready.get_future().share();
    *holder = rnet::Timer(node, 1ms, [&, start](auto&) {
        start.wait();
        holder.reset();
        cancelled.set_value();
    });
    ready.set_value();
    CHECK(cancelled.get_future().wait_for(limit) == std::future_status::ready);
    rnet::Timer closing(node, 1ms, [&](auto&) {
        node.close();
        closed.set_value();
    });
    CHECK(closed.get_future().wait_for(limit) == std::future_status::ready);
    CHECK(thrown([&] { rnet::Timer(node, 1ms, [](auto&) {}); }) == Code::closed);
}

TEST("the context of a timer is freed once, also on an error") {
    Domain domain;
    auto node = domain.node();
    Context context;
    auto count = [](const rnet_tick*, void* context) { ++static_cast<Context*>(context)->calls; };
    rnet_timer* timer = nullptr;
    rnet_timer_options options{};
    const auto start = [&](const rnet_node* in, std::int64_t period_ns, rnet_tick_function callback,
                           rnet_timer** out) {
        return rnet_timer_new(in, period_ns, &options, callback, &context, Context::free, out, nullptr);
    };
    CHECK(start(node.handle(), 1, count, &timer) == RNET_INVALID_ARGUMENT);
    options.struct_size = sizeof options;
    CHECK(start(node.handle(), 0, count, &timer) == RNET_BAD_VALUE);
    CHECK(start(node.handle(), -1, count, &timer) == RNET_INVALID_ARGUMENT);
    CHECK(start(node.handle(), 1, nullptr, &timer) == RNET_INVALID_ARGUMENT);
    CHECK(start(nullptr, 1, count, &timer) == RNET_INVALID_ARGUMENT);
    CHECK(start(node.handle(), 1'000'000, count, nullptr) == RNET_INVALID_ARGUMENT);
    CHECK(eventually([&] { return context.freed == 6; }) && timer == nullptr);
    CHECK(start(node.handle(), 1'000'000, count, &timer) == RNET_OK);
    CHECK(eventually([&] { return context.calls > 0; }));
    node.close();
    CHECK(eventually([&] { return context.freed == 7; }) && rnet_timer_ticks(timer) == 0);
    rnet_timer_free(timer);
    rnet_timer_free(nullptr);
    CHECK(context.freed == 7);
}

TEST("a rate gives multiples of its period, and counts overruns") {
    rnet::Rate rate(1000.0);
    const auto first = rate.sleep(), second = rate.sleep();
    CHECK(first.number > 0 && second.number > first.number);
    CHECK((second.due_ns - first.due_ns) % 1'000'000 == 0);
    std::this_thread::sleep_for(5ms);  // sleep: lets ticks pass
    const auto late = rate.sleep();
    CHECK(late.missed > 0 && rate.overruns() > 0 && rate.missed() >= late.missed);
    CHECK(rate.sleep_for(limit).number > late.number);
}

TEST("a rate that is not due gives nothing, and times out") {
    rnet::Rate rate(0.001);
    CHECK(!rate.try_tick());
    CHECK(thrown([&] { rate.sleep_for(1ms); }) == Code::timeout);
    CHECK(thrown([&] { rate.sleep_for(0ms); }) == Code::timeout);
    CHECK(!rate.try_tick() && rate.missed() == 0);
    CHECK(thrown([] { rnet::Rate(0.0); }) == Code::bad_value);
    CHECK(thrown([] { rnet::Rate(-1.0); }) == Code::bad_value);
}

TEST("closing the node ends the sleep of a rate") {
    Domain domain;
    auto node = domain.node();
    rnet::Rate rate(node, 0.001);
    const auto sleep = [&] { return undisturbed([&] { return rate.sleep(std::nothrow); }); };
    auto slept = std::async(std::launch::async, sleep);
    const auto is_busy = [&] {
        return rnet_rate_sleep(rate.handle(), 0, nullptr, nullptr) == RNET_WRONG_THREAD;
    };
    CHECK(eventually(is_busy));
    node.close();
    CHECK(slept.wait_for(limit) == std::future_status::ready && slept.get().error().code() == Code::closed);
    CHECK(thrown([&] { rate.try_tick(); }) == Code::closed);
    CHECK(thrown([&] { rnet::Rate(node, 1.0); }) == Code::closed);
}

TEST("timers and rates follow simulated time, and a stopped one does not block closing") {
    Domain domain;
    auto simulator = domain.node("simulator"), robot = domain.node("robot", true);
    CHECK(rnet_node_is_sim_time(robot.handle()) && !rnet_node_is_sim_time(simulator.handle()));
    CHECK(!rnet_node_is_sim_time(nullptr));
    Clock clock(simulator);
    clock.set(1'000'000'000);
    CHECK(eventually([&] { return robot.now() == 1s; }));
    std::atomic<int> ticks{0};
    rnet::Timer timer(robot, 10ms, [&](auto&) { ++ticks; });
    clock.set(1'010'000'000);
    CHECK(eventually([&] { return ticks == 1; }));
    rnet::Rate rate(robot, 100.0);
    CHECK(!rate.try_tick());
    clock.set(1'020'000'000);
    CHECK(rate.sleep().due_ns == 1'020'000'000);
    // A callback that sleeps in a time that stands still.
    std::promise<Code> woken;
    rnet::TimerOptions once;
    once.once = true;
    rnet::Timer sleeping(robot, 1ms, [&](auto&) {
        woken.set_value(undisturbed([&] { return rate.sleep(std::nothrow); }).error().code());
    }, once);
    clock.set(1'021'000'000);
    const auto is_busy = [&] {
        return rnet_rate_sleep(rate.handle(), 0, nullptr, nullptr) == RNET_WRONG_THREAD;
    };
    CHECK(eventually(is_busy));
    robot.close();
    CHECK(woken.get_future().get() == Code::closed);
}

TEST("clocks of the host") {
    const auto offset = rnet::wall_offset();
    const auto wall = std::chrono::system_clock::now().time_since_epoch();
    const auto difference = std::chrono::nanoseconds(wall) - (rnet::now() + offset.offset);
    CHECK(difference > -60s && difference < 60s && offset.uncertainty.count() >= 0);
    rnet_wall_offset(nullptr, nullptr);
    CHECK(rnet_boot_ns() > 0 && rnet_boot_id() == rnet_boot_id());
}

TEST("null objects, and timers in a forked child") {
    CHECK(rnet_timer_ticks(nullptr) == 0 && rnet_timer_missed(nullptr) == 0);
    CHECK(rnet_rate_overruns(nullptr) == 0 && rnet_rate_missed(nullptr) == 0);
    CHECK(rnet_rate_sleep(nullptr, 0, nullptr, nullptr) == RNET_INVALID_ARGUMENT);
    CHECK(rnet_rate_new(nullptr, 1.0, nullptr, nullptr) == RNET_INVALID_ARGUMENT);
    rnet_rate_free(nullptr);
    rnet::Rate rate(1000.0);
    rnet_tick tick{};
    CHECK(rnet_rate_sleep(rate.handle(), RNET_FOREVER, &tick, nullptr) == RNET_INVALID_ARGUMENT);
    Domain domain;
    auto node = domain.node();
    std::atomic<int> calls{0};
    rnet::Timer timer(node, 1ms, [&](auto&) { ++calls; });
    CHECK(in_child([&] {
              if (rnet_timer_ticks(timer.handle()) != 0) return 1;
              timer.cancel();
              return thrown([&] { rnet::Timer(node, 1ms, [](auto&) {}); }) == Code::closed ? 0 : 2;
          }) == 0);
    const int before = calls;
    CHECK(eventually([&] { return calls > before; }));
}

RNET_TEST_MAIN()
