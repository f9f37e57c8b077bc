// Communication between a node's process and run.py through pipes, because the system under test must not
// carry its own verdict.
//
// run.py writes one command per line to stdin; the node writes one JSON report per line to stdout. When stdin
// is closed, the node exits, so that no node is left behind when run.py dies.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <unistd.h>

/// The node's end of the pipes. One for each program; its thread uses it until the program ends.
class Process {
public:
    /// Reports that the process is ready, and waits for permission to join. False if it is to exit instead.
    bool start() {
        report("\"ready\"");
        const bool permitted = !read_commands().empty();
        begin_ = std::chrono::steady_clock::now();
        return permitted;
    }

    /// Reports the time from the command to join until the first peer was found, and starts listening. Not
    /// earlier, because a node should join like a program without other threads.
    void joined() {
        const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - begin_;
        report("\"joined\", \"join_ms\": " + std::to_string(time.count()));
        std::thread([this] { listen(); }).detach();
    }

    /// Reports how many messages the node itself has counted as sent on its topic.
    void report_quiet(const char* topic, std::uint64_t sent) {
        report("\"quiet\", \"sent\": {\"" + std::string(topic) + "\": " + std::to_string(sent) + "}");
    }

    /// Whether the node must not send, but continue to receive.
    bool is_quiet() const { return quiet_; }
    /// Whether the node is to exit.
    bool is_stopped() const { return stopped_; }
    /// Whether run.py orders a stop of the robot: between "stop" and "go".
    bool is_stop_ordered() const { return ordered_; }

private:
    /// Time after which a node that was told to exit is terminated by its own process.
    static constexpr std::chrono::seconds stop_timeout{3};

    /// What run.py has written; empty if it has closed the pipe. It writes whole lines, each shorter than
    /// PIPE_BUF.
    static std::string read_commands() {
        char text[4096];
        const ssize_t len = read(STDIN_FILENO, text, sizeof text);
        return len > 0 ? std::string(text, static_cast<std::size_t>(len)) : std::string();
    }

    void listen() {
        for (std::string text; !(text = read_commands()).empty();) {
            std::istringstream words(text);
            for (std::string word; words >> word;) {
                if (word == "quiet") quiet_ = true;
                if (word == "stop") ordered_ = true;
                if (word == "go") ordered_ = false;
            }
        }
        quiet_ = stopped_ = true;
        std::this_thread::sleep_for(stop_timeout);
        _exit(3);
    }

    /// If run.py is gone, nothing reads it, and stdin is closed too.
    static void report(const std::string& event) {
        std::printf("{\"event\": %s}\n", event.c_str());
        std::fflush(stdout);
    }

    std::chrono::steady_clock::time_point begin_;
    std::atomic<bool> quiet_{false}, stopped_{false}, ordered_{false};
};
