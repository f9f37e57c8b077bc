// Log lines: of the node, and of a program that uses spdlog. Needs libspdlog-dev. `rnet log` shows both.
#include "spdlog_sink.hpp"

#include <rnet/rnet.hpp>

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

int main() {
    rnet::Node node("arm");
    rnet::Logger(node).info("the arm is at home");

    auto console = std::make_shared<spdlog::sinks::stderr_color_sink_mt>();
    spdlog::logger logger("arm", {console, std::make_shared<RnetSink>(node)});
    SPDLOG_LOGGER_WARN(&logger, "joint {} is at {:.1f} °C", 3, 71.5);
}
