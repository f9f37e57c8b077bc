#include "calls.hpp"

#include <rnet/command.hpp>

#include <algorithm>
#include <sys/wait.h>
#include <vector>

using namespace rnet;

namespace {

/// What a receiver has applied, and why it fell back.
struct Log {
    std::mutex mutex;
    std::vector<double> applied;
    std::vector<FallbackReason> reasons;

    void apply(const Number& number) {
        std::lock_guard<std::mutex> lock(mutex);
        applied.push_back(number.x);
    }
    void fall_back(FallbackReason reason) {
        std::lock_guard<std::mutex> lock(mutex);
        reasons.push_back(reason);
    }
    bool has(double x) {
        std::lock_guard<std::mutex> lock(mutex);
        return std::find(applied.begin(), applied.end(), x) != applied.end();
    }
    bool has(FallbackReason reason) {
        std::lock_guard<std::mutex> lock(mutex);
        return std::find(reasons.begin(), reasons.end(), reason) != reasons.end();
    }
    auto applier() {
        return [this](const Number& number) { apply(number); };
    }
    auto fallback() {
        return Fallback<Number>::handler([this](FallbackReason reason) { fall_back(reason); });
    }
};

/// A receiver that does not fall back because a test is slow.
CommandOptions patient() {
    CommandOptions options;
    options.deadline = 1min;
    return options;
}

DriverOptions patient_driver(std::int32_t priority = 0) {
    DriverOptions options;
    options.priority = priority;
    options.lease = 1min;
    return options;
}

/// Sends until the receiver has applied it.
bool drives(Driver<Number>& driver, Log& log, double x) {
    return becomes([&] {
        driver.send(Number{x});
        return log.has(x);
    });
}

}  // namespace

TEST("commands of the driver are applied, and its release falls back") {
    TestNode node("base");
    Log log;
    auto base = Command::receive<Number>(node, "/cmd", log.applier(), log.fallback(), patient());
    CHECK(base.topic() == "/cmd" && log.has(FallbackReason::opened));
    CHECK(base.status().driver.empty() && !base.status().in_force);
    TestNode other("joystick", node.domain());
    auto driver = Driver<Number>::take(other, "/cmd", patient_driver(7));
    CHECK(driver.topic() == "/cmd" && driver.in_force() && driver.number() > 0);
    CHECK(drives(driver, log, 0.5));
    CHECK(becomes([&] { return base.status().in_force; }));
    auto status = base.status();
    CHECK(status.driver == "/joystick" && status.priority == 7 && status.number == driver.number());
    CHECK(status.reason == FallbackReason::none && !status.fallback_failed);
    driver.renew();
    driver.release();
    CHECK(becomes([&] { return log.has(FallbackReason::released); }));
    CHECK(code_of([&] { driver.send(Number{1}); }) == Code::closed);
    CHECK(!driver.in_force());
    driver.release();
    CHECK(base.stats().applied >= 1 && base.stats().fallbacks >= 1);
}

TEST("a second receiver, and a fallback that is missing, are errors") {
    TestNode node("base");
    Log log;
    auto base = Command::receive<Number>(node, "/cmd", log.applier(), log.fallback());
    CHECK(code_of([&] { Command::receive<Number>(node, "/cmd", log.applier(), log.fallback()); }) ==
          Code::receiver_exists);
    auto none = Fallback<Number>::handler(nullptr);
    CHECK(code_of([&] { Command::receive<Number>(node, "/other", log.applier(), none); }) == Code::bad_value);
    auto zero = Fallback<Bytes>::zero();
    CHECK(code_of([&] { Command::receive<Bytes>(node, "/raw", [](Bytes) {}, zero); }) == Code::bad_value);
    CommandOptions options;
    options.deadline = 1us;
    auto receive = [&] { Command::receive<Number>(node, "/short", log.applier(), log.fallback(), options); };
    CHECK(code_of(receive) == Code::bad_value);
}

TEST("the fallbacks message, zero and hold are applied") {
    TestNode node("base");
    CommandOptions options;
    options.deadline = 20ms;
    struct {
        Fallback<Number> fallback;
        double applied;
    } cases[] = {{Fallback<Number>::message(Number{-1}), -1},
                 {Fallback<Number>::zero(), 0},
                 {Fallback<Number>::hold(), 5}};
    for (auto& one : cases) {
        Log log;
        auto base = Command::receive<Number>(node, "/cmd", log.applier(), one.fallback, options);
        auto driver = Driver<Number>::take(node, "/cmd", patient_driver());
        CHECK(drives(driver, log, 5));
        auto fallbacks = base.stats().fallbacks;
        CHECK(becomes([&] { return base.stats().fallbacks > fallbacks || base.stats().fallbacks > 0; }));
        CHECK(becomes([&] { return log.has(one.applied); }));
        driver.close();
        base.close();
        CHECK(code_of([&] { base.status(); }) == Code::closed);
    }
}

TEST("silence falls back after the deadline, and the next command ends the fallback") {
    TestNode node("base");
    Log log;
    CommandOptions options;
    options.deadline = 30ms;
    auto base = Command::receive<Number>(node, "/cmd", log.applier(), log.fallback(), options);
    auto driver = Driver<Number>::take(node, "/cmd", patient_driver());
    CHECK(drives(driver, log, 1));
    CHECK(becomes([&] { return log.has(FallbackReason::deadline); }));
    CHECK(drives(driver, log, 2));
}

TEST("a driver of higher priority takes authority; the other one learns of it") {
    TestNode node("base");
    Log log;
    auto base = Command::receive<Number>(node, "/cmd", log.applier(), log.fallback(), patient());
    TestNode one("one", node.domain()), two("two", node.domain());
    auto low = Driver<Number>::take(one, "/cmd", patient_driver(1));
    CHECK(drives(low, log, 1));
    CHECK(code_of([&] { Driver<Number>::take(two, "/cmd", patient_driver(1)); }) == Code::not_in_force);
    {
        auto high = Driver<Number>::take(two, "/cmd", patient_driver(2));
        CHECK(high.number() > low.number());
        CHECK(becomes([&] { return !low.in_force(); }));
        auto refused = low.send(Number{2}, std::nothrow);
        CHECK(!refused && refused.error().code() == Code::not_in_force && refused.error().topic() == "/cmd");
        CHECK(std::string(refused.error().what()).find("/two") != std::string::npos);
        CHECK(code_of([&] { low.renew(); }) == Code::not_in_force);
        CHECK(code_of([&] { low.retake(); }) == Code::not_in_force);
        CHECK(drives(high, log, 3));
    }
    CHECK(log.has(FallbackReason::preempted));
    CHECK(becomes([&] { return log.has(FallbackReason::released); }));
    low.retake();
    CHECK(low.in_force() && drives(low, log, 4));
}

TEST("authority expires with the lease, and is retaken by itself if that was chosen") {
    TestNode node("base");
    Log log;
    auto base = Command::receive<Number>(node, "/cmd", log.applier(), log.fallback(), patient());
    DriverOptions options;
    options.lease = 30ms;
    {
        auto driver = Driver<Number>::take(node, "/cmd", options);
        CHECK(becomes([&] {
            if (!driver.send(Number{1}, std::nothrow)) driver.retake();
            return log.has(1);
        }));
        CHECK(becomes([&] { return !driver.in_force(); }));
        CHECK(becomes([&] { return log.has(FallbackReason::expired); }));
        CHECK(code_of([&] { driver.send(Number{1}); }) == Code::not_in_force);
    }
    options.auto_retake = true;
    auto driver = Driver<Number>::take(node, "/cmd", options);
    std::this_thread::sleep_for(100ms);  // sleep: lets the lease end
    CHECK(becomes([&] { return driver.in_force(); }));
}

TEST("a driver waits for a receiver, for its time limit") {
    TestNode node("base");
    DriverOptions options;
    options.timeout = 20ms;
    CHECK(code_of([&] { Driver<Number>::take(node, "/cmd", options); }) == Code::timeout);
    options.priority = 2147483647;
    CHECK(code_of([&] { Driver<Number>::take(node, "/cmd", options); }) == Code::bad_value);
    TestNode other("driver", node.domain());
    auto taken = std::async(std::launch::async, [&] { return Driver<Number>::take(other, "/cmd").number(); });
    Log log;
    auto base = Command::receive<Number>(node, "/cmd", log.applier(), log.fallback());
    CHECK(taken.wait_for(LIMIT) == std::future_status::ready && taken.get() > 0);
}

TEST("an exception of apply is reported, and the fallback follows") {
    TestNode node("base");
    Log log;
    auto apply = [&](const Number& number) {
        log.apply(number);
        if (number.x < 0) throw std::runtime_error("the motor is hot");
    };
    auto base = Command::receive<Number>(node, "/cmd", apply, log.fallback(), patient());
    auto driver = Driver<Number>::take(node, "/cmd", patient_driver());
    CHECK(drives(driver, log, -1));
    CHECK(becomes([&] { return log.has(FallbackReason::panicked); }));
    CHECK(becomes([&] { return base.stats().panics >= 1; }));
    CHECK(drives(driver, log, 2));
}

TEST("a first fallback that fails is an error of opening") {
    TestNode node("base");
    Log log;
    auto bad = Fallback<Number>::handler([](FallbackReason) { throw std::runtime_error("no brake"); });
    CHECK(code_of([&] { Command::receive<Number>(node, "/cmd", log.applier(), bad); }) == Code::bad_value);
    auto base = Command::receive<Number>(node, "/cmd", log.applier(), log.fallback());
    CHECK(log.has(FallbackReason::opened));
}

TEST("closing falls back for the last time, and frees the functions") {
    TestNode node("base");
    Log log;
    auto alive = std::make_shared<int>(0);
    auto apply = [&log, alive](const Number& number) { log.apply(number); };
    CHECK(alive.use_count() == 2);
    {
        auto base = Command::receive<Number>(node, "/cmd", apply, log.fallback(), patient());
        auto driver = Driver<Number>::take(node, "/cmd", patient_driver());
        CHECK(drives(driver, log, 1));
        base.close();
        CHECK(log.has(FallbackReason::closed));
        CHECK(becomes([&] { return code_of([&] { driver.send(Number{2}); }) == Code::not_in_force; }));
    }
    CHECK(alive.use_count() == 2);
}

TEST("commands are forwarded to a topic") {
    TestNode node("base");
    auto base = Command::forward<Number>(node, "/cmd", "/wheels", Fallback<Number>::zero(), patient());
    rnet_subscriber_options options{};
    options.struct_size = sizeof options;
    options.transient_local = true;
    rnet_subscriber* wheels = nullptr;
    CHECK(rnet_subscriber_new(node.handle(), "/wheels", &options, &wheels, nullptr) == RNET_OK);
    auto driver = Driver<Number>::take(node, "/cmd", patient_driver());
    CHECK(becomes([&] {
        driver.send(Number{3});
        const rnet_sample* sample = nullptr;
        if (rnet_subscriber_recv(wheels, 10000000, &sample, nullptr) != RNET_OK) return false;
        return Message<Number>::view(detail::view_of(rnet_sample_data(sample))).x == 3;
    }));
    rnet_subscriber_free(wheels);
    auto handler = Fallback<Number>::handler([](FallbackReason) {});
    CHECK(code_of([&] { Command::forward<Number>(node, "/two", "/wheels2", handler); }) == Code::bad_value);
}

TEST("closing the node closes the receiver and the driver, and ends a wait for a receiver") {
    TestNode node("base");
    Log log;
    auto base = Command::receive<Number>(node, "/cmd", log.applier(), log.fallback(), patient());
    TestNode other("driver", node.domain());
    auto driver = Driver<Number>::take(other, "/cmd", patient_driver());
    CHECK(drives(driver, log, 1));
    auto waiting = std::async(std::launch::async, [&] {
        DriverOptions options;
        options.timeout = 1h;
        return code_of([&] { Driver<Number>::take(other, "/nobody", options); });
    });
    std::this_thread::sleep_for(20ms);  // sleep: lets the thread begin to wait
    other.close();
    CHECK(waiting.wait_for(LIMIT) == std::future_status::ready && waiting.get() == Code::closed);
    CHECK(code_of([&] { driver.send(Number{2}); }) == Code::closed && !driver.in_force());
    CHECK(becomes([&] { return log.has(FallbackReason::released); }));
    node.close();
    CHECK(code_of([&] { base.stats(); }) == Code::closed);
}

TEST("a driver belongs to one thread at a time, and closing it ends a retake") {
    TestNode node("base");
    Log log;
    auto base = std::make_unique<Command>(
        Command::receive<Number>(node, "/cmd", log.applier(), log.fallback(), patient()));
    DriverOptions options = patient_driver();
    options.timeout = 1h;
    auto driver = Driver<Number>::take(node, "/cmd", options);
    base.reset();
    CHECK(becomes([&] { return !driver.in_force(); }));
    CHECK(code_of([&] { driver.retake_for(1ms); }) == Code::timeout);
    auto retake = std::async(std::launch::async, [&] { return code_of([&] { driver.retake(); }); });
    CHECK(becomes([&] { return code_of([&] { (void)driver.number(); }) == Code::wrong_thread; }));
    driver.close();
    CHECK(retake.wait_for(LIMIT) == std::future_status::ready && retake.get() == Code::closed);
}

TEST("null handles and wrong option structs are errors") {
    TestNode node("null");
    rnet_command* command = nullptr;
    rnet_driver* driver = nullptr;
    int freed = 0;
    auto free = [](void* context) { ++*static_cast<int*>(context); };
    auto apply = [](rnet_bytes, void*) { return true; };
    auto fall_back = [](rnet_fallback_reason, void*) { return true; };
    auto open = [&](rnet_node* node, const rnet_command_options* options, rnet_apply_function apply) {
        return rnet_command_new(node, "/cmd", options, apply, fall_back, &freed, free, &command, nullptr);
    };
    CHECK(open(nullptr, nullptr, apply) == RNET_INVALID_ARGUMENT);
    CHECK(open(node.handle(), nullptr, nullptr) == RNET_INVALID_ARGUMENT);
    rnet_command_options options{};
    CHECK(open(node.handle(), &options, apply) == RNET_INVALID_ARGUMENT);
    options.struct_size = sizeof options;
    options.fallback = RNET_FALLBACK_HOLD;
    CHECK(open(node.handle(), &options, apply) == RNET_INVALID_ARGUMENT);
    options.fallback = 9;
    CHECK(open(node.handle(), &options, apply) == RNET_INVALID_ARGUMENT);
    options.fallback = 0;
    options.forward = "/wheels";
    CHECK(open(node.handle(), &options, apply) == RNET_INVALID_ARGUMENT);
    CHECK(freed == 6);
    rnet_driver_options drive{};
    CHECK(rnet_driver_take(node.handle(), "/cmd", &drive, &driver, nullptr) == RNET_INVALID_ARGUMENT);
    CHECK(rnet_driver_take(nullptr, "/cmd", nullptr, &driver, nullptr) == RNET_INVALID_ARGUMENT);
    CHECK(rnet_driver_send(nullptr, nullptr, 0, nullptr) == RNET_INVALID_ARGUMENT);
    CHECK(rnet_driver_renew(nullptr, nullptr) == RNET_INVALID_ARGUMENT);
    CHECK(rnet_driver_retake(nullptr, 0, nullptr) == RNET_INVALID_ARGUMENT);
    CHECK(rnet_driver_release(nullptr, nullptr) == RNET_INVALID_ARGUMENT);
    rnet_command_status* status = nullptr;
    CHECK(rnet_command_get_status(nullptr, &status, nullptr) == RNET_INVALID_ARGUMENT);
    rnet_command_close(nullptr);
    rnet_command_free(nullptr);
    rnet_command_status_free(nullptr);
    rnet_driver_close(nullptr);
    rnet_driver_free(nullptr);
}

TEST("in a forked child the objects of the parent are closed") {
    TestNode node("parent");
    Log log;
    auto base = Command::receive<Number>(node, "/cmd", log.applier(), log.fallback(), patient());
    auto driver = Driver<Number>::take(node, "/cmd", patient_driver());
    pid_t child = fork();
    if (child == 0) {
        bool closed = code_of([&] { driver.send(Number{1}); }) == Code::closed;
        closed &= code_of([&] { base.status(); }) == Code::closed;
        driver.close();
        base.close();
        _exit(closed ? 0 : 1);
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK(driver.in_force() && drives(driver, log, 2));
}

RNET_TEST_MAIN()
