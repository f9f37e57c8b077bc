// The log of a node: lines for people, on the topic /log and on stderr.
//
//     rnet::Logger log(node);
//     log.info("the arm is at home");
#pragma once

#include <rnet.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace rnet {

enum class LogLevel : std::int32_t {
    debug = RNET_LOG_DEBUG,
    info = RNET_LOG_INFO,
    warning = RNET_LOG_WARNING,
    error = RNET_LOG_ERROR,
    fatal = RNET_LOG_FATAL,
};

/// The place of a call in the source.
#define RNET_HERE const char *file = __builtin_FILE(), int line = __builtin_LINE()

/// Logs lines of a node, which must outlive it. Logging never blocks, throws nothing, and is rate limited:
/// see rnet_node_log(). Any thread may use it.
class Logger {
public:
    explicit Logger(const rnet_node* node) noexcept : node_(node) {}
    template <class N, class = decltype(std::declval<const N&>().handle())>
    explicit Logger(const N& node) noexcept : node_(node.handle()) {}

    /// Details for developers.
    void debug(std::string_view text, RNET_HERE) const {
        log(LogLevel::debug, text, file, line);
    }
    /// As expected.
    void info(std::string_view text, RNET_HERE) const {
        log(LogLevel::info, text, file, line);
    }
    /// Unexpected, but the work continues.
    void warning(std::string_view text, RNET_HERE) const {
        log(LogLevel::warning, text, file, line);
    }
    /// Something could not be done.
    void error(std::string_view text, RNET_HERE) const {
        log(LogLevel::error, text, file, line);
    }
    /// The program ends; the caller ends it.
    void fatal(std::string_view text, RNET_HERE) const {
        log(LogLevel::fatal, text, file, line);
    }

    void log(LogLevel level, std::string_view text, RNET_HERE) const {
        if (!is_enabled(level)) return;
        auto number = static_cast<std::int32_t>(level);
        rnet_node_log(node_, number, std::string(text).c_str(), file, static_cast<std::uint32_t>(line));
    }
    /// For a sink of another logging library: ignores the level of the node, and does not print on stderr.
    void publish(LogLevel level, std::string_view text, const char* file, int line) const {
        auto number = static_cast<std::int32_t>(level);
        rnet_node_publish_log(node_, number, std::string(text).c_str(), file,
                              static_cast<std::uint32_t>(line));
    }

    /// The lowest level that is logged: RNET_LOG, or info.
    LogLevel level() const noexcept { return static_cast<LogLevel>(rnet_node_log_level(node_)); }
    void set_level(LogLevel level) const noexcept {
        rnet_node_set_log_level(node_, static_cast<std::int32_t>(level));
    }
    /// To skip the formatting of lines that are not logged.
    bool is_enabled(LogLevel level) const noexcept {
        return rnet_node_is_log_enabled(node_, static_cast<std::int32_t>(level));
    }
    /// Number of lines suppressed by the limits.
    std::uint64_t suppressed_count() const noexcept { return rnet_node_suppressed_log_count(node_); }

private:
    const rnet_node* node_;
};

#undef RNET_HERE

}  // namespace rnet
