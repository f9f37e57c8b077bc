// What the tests of state and parameters share.
#pragma once

#include "check.hpp"

#include <rnet/error.hpp>

#include <filesystem>
#include <functional>
#include <string>
#include <utility>

namespace check {

/// A directory for domains and durable state, removed at the end.
class Folder {
public:
    Folder() {
        path_ = folder("state-XXXXXX");
        require(mkdtemp(path_.data()) != nullptr, "a folder", __FILE__, __LINE__);
    }
    Folder(const Folder&) = delete;
    ~Folder() { std::filesystem::remove_all(path_); }
    std::string path(const char* name = "") const { return path_ + "/" + name; }

private:
    std::string path_;
};

/// A node, as class Node, without the rest of that.
class TestNode {
public:
    TestNode(const char* name, const std::string& folder) {
        std::filesystem::create_directories(folder + "/shm");
        const std::string dir = folder + "/shm", state_dir = folder + "/disk";
        rnet_node_options options{};
        options.struct_size = sizeof options;
        options.dir = dir.c_str();
        options.domain = "test";
        options.state_dir = state_dir.c_str();
        rnet_error* error = nullptr;
        rnet_node* node = nullptr;
        const rnet_code code = rnet_node_new(name, &options, &node, &error);
        if (code != RNET_OK) throw rnet::Error(static_cast<rnet::Code>(code), error);
        handle_.reset(node);
    }
    void close() { rnet_node_close(handle()); }
    rnet_node* handle() const noexcept { return handle_.get(); }

private:
    rnet::detail::Handle<rnet_node, rnet_node_free> handle_;
};

/// A domain of one node.
struct Domain {
    Folder folder;
    TestNode node{"arm", folder.path()};
};

/// The code of the error that a function throws; ok if it throws none.
inline rnet::Code code_of(const std::function<void()>& run) {
    try {
        run();
        return rnet::Code::ok;
    } catch (const rnet::Error& error) {
        return error.code();
    }
}

/// The code and the text of the error of a call of the C API, whose last argument is the error.
template <class F, class... Args>
std::pair<rnet_code, std::string> failure(F&& function, Args... args) {
    rnet_error* error = nullptr;
    const rnet_code code = function(args..., &error);
    std::pair<rnet_code, std::string> found{code, rnet_error_text(error)};
    rnet_error_free(error);
    return found;
}

}  // namespace check

#define CHECK_CODE(expected, ...) CHECK(check::code_of([&] { (void)(__VA_ARGS__); }) == rnet::Code::expected)
