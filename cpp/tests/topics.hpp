// What the tests of topics share.
#pragma once

#include "check.hpp"

#include <rnet/rnet.hpp>

#include <chrono>
#include <filesystem>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace std::chrono_literals;
using rnet::Bytes;
using rnet::Code;

inline constexpr auto limit = 10s;

/// A domain of one test, in its own directory.
struct Domain {
    std::string name = check::domain();
    std::string dir = check::folder(name);

    Domain() { std::filesystem::create_directory(dir); }
    Domain(const Domain&) = delete;
    Domain& operator=(const Domain&) = delete;
    ~Domain() {
        if (getpid() == pid_) std::filesystem::remove_all(dir);
    }
    rnet::NodeOptions options() const {
        rnet::NodeOptions options;
        options.domain = name;
        options.dir = dir;
        options.state_dir = dir + "/state";
        return options;
    }
    rnet::Node node(const char* called = "test") const { return rnet::Node(called, options()); }

private:
    pid_t pid_ = getpid();
};

inline rnet::SubscriberOptions keep_all() {
    rnet::SubscriberOptions options;
    options.keep_all = true;
    return options;
}
inline rnet::SubscriberOptions reliable() {
    rnet::SubscriberOptions options;
    options.reliable = true;
    return options;
}
inline rnet::PublisherOptions reliable_publisher() {
    rnet::PublisherOptions options;
    options.reliable = true;
    options.full_timeout = limit;
    return options;
}

/// The code of the error that a call throws.
template <class F>
Code thrown(F&& call) {
    try {
        call();
    } catch (const rnet::Error& error) {
        return error.code();
    }
    return Code::ok;
}

/// Waits until a condition holds.
template <class F>
bool eventually(F&& holds) {
    const auto until = std::chrono::steady_clock::now() + limit;
    while (!holds()) {
        if (std::chrono::steady_clock::now() > until) return false;
        std::this_thread::sleep_for(1ms);  // sleep: polling interval
    }
    return true;
}

/// Runs a function in a forked child, and returns its exit status.
template <class F>
int in_child(F&& run) {
    const pid_t child = fork();
    if (child == 0) _exit(run());
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

struct Force {
    double newton[3];
    std::uint64_t time_ns;
};
RNET_PLAIN(Force, newton, time_ns)
struct LevelV1 {
    double volt;
};
RNET_PLAIN_AS(LevelV1, "Level", volt)
