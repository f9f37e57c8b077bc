// What tests of nodes share.
#pragma once

#include "check.hpp"

#include <rnet/rnet.hpp>

#include <chrono>
#include <filesystem>
#include <string>
#include <sys/wait.h>
#include <thread>

using namespace std::chrono_literals;

namespace check {

/// Generous: no test measures time.
constexpr auto limit = 10s;

/// A domain of one test, in its own directory.
struct Domain {
    std::string name = check::domain();
    std::string dir = check::folder(name);

    Domain() { std::filesystem::create_directory(dir); }
    Domain(const Domain&) = delete;
    Domain& operator=(const Domain&) = delete;
    ~Domain() {
        if (getpid() == pid) std::filesystem::remove_all(dir);
    }
    rnet::NodeOptions options() const {
        rnet::NodeOptions options;
        options.domain = name;
        options.dir = dir;
        options.state_dir = dir + "/state";
        return options;
    }
    rnet::Node node(const char* called = "test", std::optional<bool> sim_time = {}) const {
        rnet::NodeOptions given = options();
        given.sim_time = sim_time;
        return rnet::Node(called, given);
    }

    pid_t pid = getpid();
};

/// The code of the error that a call throws.
template <class F>
rnet::Code thrown(F&& call) {
    try {
        call();
    } catch (const rnet::Error& error) {
        return error.code();
    }
    return rnet::Code::ok;
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

/// Repeats a call while another thread uses its object.
template <class F>
auto undisturbed(F&& call) {
    for (;;) {
        auto result = call();
        if (result || result.error().code() != rnet::Code::wrong_thread) return result;
    }
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

/// The context of a callback of the C API: counts its calls, and that it was freed once.
struct Context {
    std::atomic<int> calls{0}, freed{0};
    static void free(void* context) { ++static_cast<Context*>(context)->freed; }
};

}  // namespace check
