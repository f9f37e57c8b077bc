// What the parts of the conformance actor share.
#pragma once

#include <nlohmann/json.hpp>
#include <rnet/error.hpp>

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using nlohmann::json;
using namespace std::chrono_literals;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

/// Long enough for each event that a test expects.
constexpr auto LONG = 120s;

/// Ends the actor, which fails its test.
[[noreturn]] inline void give_up(const std::string& why) {
    std::cerr << "conformance_actor: " << why << '\n';
    std::exit(2);
}

/// Waits until a condition holds.
template <class F>
void eventually(const char* what, F&& holds) {
    const auto until = std::chrono::steady_clock::now() + LONG;
    while (!holds()) {
        if (std::chrono::steady_clock::now() > until) give_up(std::string("waited in vain until ") + what);
        std::this_thread::sleep_for(1ms);  // sleep: polling interval
    }
}

/// The kind of a step and its content: an enum of serde.
inline std::pair<std::string, json> variant(const json& step) {
    if (step.is_string()) return {step.get<std::string>(), json()};
    return {step.begin().key(), step.begin().value()};
}

inline std::string text(const json& given, const char* name) { return given.at(name).get<std::string>(); }

/// The outcome of a step in words.
inline json said(std::vector<std::string> words = {}) { return {{"Said", std::move(words)}}; }

/// Reports of callbacks.
class Words {
public:
    void add(std::string word) {
        const std::lock_guard lock(mutex_);
        words_.push_back(std::move(word));
    }
    /// All, once this many exist.
    json at_least(std::size_t count) {
        eventually("the reports exist", [&] { return all().size() >= count; });
        return said(all());
    }

private:
    std::vector<std::string> all() {
        const std::lock_guard lock(mutex_);
        return words_;
    }

    std::mutex mutex_;
    std::vector<std::string> words_;
};
