// A sink of spdlog that publishes its lines on /log, where `rnet log` shows them with those of all nodes.
#pragma once

#include <rnet/log.hpp>

#include <spdlog/details/null_mutex.h>
#include <spdlog/sinks/base_sink.h>

/// Needs no mutex: the node has its own. The node must outlive it.
class RnetSink : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
public:
    template <class Node>
    explicit RnetSink(const Node& node) : log_(node) {}

protected:
    void sink_it_(const spdlog::details::log_msg& line) override {
        const std::string_view text(line.payload.data(), line.payload.size());
        log_.publish(level_of(line.level), text, line.source.filename, line.source.line);
    }
    void flush_() override {}

private:
    static rnet::LogLevel level_of(spdlog::level::level_enum level) {
        switch (level) {
            case spdlog::level::trace:
            case spdlog::level::debug: return rnet::LogLevel::debug;
            case spdlog::level::info: return rnet::LogLevel::info;
            case spdlog::level::warn: return rnet::LogLevel::warning;
            case spdlog::level::err: return rnet::LogLevel::error;
            default: return rnet::LogLevel::fatal;
        }
    }

    rnet::Logger log_;
};
