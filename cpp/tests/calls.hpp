// What the tests of services, actions, work queues and commands share.
#pragma once

#include "check.hpp"

#include <rnet/error.hpp>
#include <rnet/message.hpp>

#include <chrono>
#include <condition_variable>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

using namespace std::chrono_literals;

/// Longest wait of a test for something that must come.
constexpr auto LIMIT = 20s;

/// A node of the C API in a domain of its own, or in that of another one.
class TestNode {
public:
    explicit TestNode(const char* name, std::string domain = check::domain()) : domain_(std::move(domain)) {
        rnet_node_options options{};
        options.struct_size = sizeof options;
        options.domain = domain_.c_str();
        rnet_error* error = nullptr;
        auto code = rnet_node_new(name, &options, &node_, &error);
        if (code != RNET_OK) throw rnet::Error(static_cast<rnet::Code>(code), error);
    }
    ~TestNode() { rnet_node_free(node_); }
    TestNode(const TestNode&) = delete;
    rnet_node* handle() const { return node_; }
    const std::string& domain() const { return domain_; }
    void close() { rnet_node_close(node_); }

private:
    std::string domain_;
    rnet_node* node_ = nullptr;
};

/// A plain struct, which is read in place.
struct Number {
    double x = 0;
};

/// A message that is decoded.
struct Text {
    std::string text;
};

template <>
struct rnet::Message<Number> {
    static constexpr bool in_place = true;
    static Result<Type> type() {
        rnet_field field{"x", 0, RNET_F64, 0, {}, nullptr};
        return Type::plain("Number", sizeof(Number), alignof(Number), {&field, 1});
    }
    static Bytes encode(const Number& number, std::vector<std::uint8_t>&) {
        return {reinterpret_cast<const std::uint8_t*>(&number), sizeof number};
    }
    static const Number& view(Bytes bytes) { return *reinterpret_cast<const Number*>(bytes.data()); }
};

template <>
struct rnet::Message<Text> {
    static constexpr bool in_place = false;
    static Result<Type> type() { return Type(); }
    static Bytes encode(const Text& text, std::vector<std::uint8_t>& buffer) {
        buffer.assign(text.text.begin(), text.text.end());
        return buffer;
    }
    static Result<void> decode(Bytes bytes, Text& text) {
        if (text_of(bytes) == "malformed") return Error(Code::malformed);
        text.text = text_of(bytes);
        return {};
    }
};

/// A gate that threads wait for.
class Gate {
public:
    void open() {
        std::lock_guard<std::mutex> lock(mutex_);
        open_ = true;
        changed_.notify_all();
    }
    /// Whether it was opened within the limit.
    bool wait() {
        std::unique_lock<std::mutex> lock(mutex_);
        return changed_.wait_for(lock, LIMIT, [&] { return open_; });
    }

    bool is_open() {
        std::lock_guard<std::mutex> lock(mutex_);
        return open_;
    }

private:
    std::mutex mutex_;
    std::condition_variable changed_;
    bool open_ = false;
};

/// Whether this becomes true within the limit.
template <class F>
bool becomes(F&& holds) {
    auto until = std::chrono::steady_clock::now() + LIMIT;
    while (!holds()) {
        if (std::chrono::steady_clock::now() > until) return false;
        std::this_thread::sleep_for(2ms);  // sleep: polling interval
    }
    return true;
}

/// The code of the error that this throws.
template <class F>
rnet::Code code_of(F&& run) {
    try {
        run();
    } catch (const rnet::Error& error) {
        return error.code();
    }
    return rnet::Code::ok;
}
