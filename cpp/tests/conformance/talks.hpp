// The endpoints of an actor with last wills, pairs of topics and the log, and its steps on them: see talk.rs.
#pragma once

#include "common.hpp"

#include <rnet/log.hpp>
#include <rnet/msgs/foxglove/Log.hpp>
#include <rnet/rnet.hpp>

#include <optional>

class Talks {
public:
    explicit Talks(rnet::Node& node) : node_(node) {}

    json act(const json& step) {
        const auto [kind, given] = variant(step);
        if (kind == "Publish") {
            rnet::PublisherOptions options;
            options.reliable = true;
            options.on_full = rnet::OnFull::refuse;
            if (!given.at("will").is_null()) options.last_will.emplace(1, given.at("will").get<std::uint8_t>());
            publisher_.emplace(node_.publisher(text(given, "topic"), options));
        } else if (kind == "Subscribe") {
            rnet::SubscriberOptions options;
            options.reliable = true;
            subscriber_.emplace(node_.subscriber(text(given, "topic"), options));
        } else if (kind == "Meet") {
            if (publisher_) publisher_->wait_for_subscribers_for(1, LONG);
            if (subscriber_) subscriber_->wait_for_publishers_for(1, LONG);
        } else if (kind == "Say") {
            const std::uint8_t value = given.at("value");
            publisher_->send(rnet::Bytes(&value, 1));
        } else if (kind == "Hear") {
            std::vector<std::string> words;
            for (std::size_t count = given.at("count"); count > 0; --count) {
                words.push_back(number(subscriber_->recv_for(LONG)));
            }
            return said(words);
        } else if (kind == "HearToItsLoss") {
            return said(hear_to_its_loss());
        } else if (kind == "HearWhatIsLeft") {
            eventually("its publisher is gone", [&] { return subscriber_->publisher_count() == 0; });
            std::vector<std::string> words;
            while (const auto sample = subscriber_->try_recv()) words.push_back(number(*sample));
            return said(words);
        } else if (kind == "Close") {
            publisher_.reset();
        } else if (kind == "Log") {
            rnet::Logger(node_).publish(level(text(given, "level")), text(given, "line"), __FILE__, __LINE__);
        } else if (kind == "HearLog") {
            return said(hear_log(given.at("count")));
        } else {
            give_up("unknown talk " + kind);
        }
        return said();
    }

private:
    static constexpr const char* LEVELS[] = {"unknown", "debug", "info", "warning", "error", "fatal"};

    static rnet::LogLevel level(const std::string& name) {
        int number = 0;
        while (LEVELS[number] != name) ++number;
        return static_cast<rnet::LogLevel>(number);
    }

    template <class Sample>
    static std::string number(const Sample& sample) {
        return std::to_string(sample.bytes()[0]);
    }

    std::vector<std::string> hear_to_its_loss() {
        std::vector<std::string> words;
        for (;;) {
            const auto sample = subscriber_->recv_for(LONG, std::nothrow);
            if (sample) {
                words.push_back((sample->is_last_will() ? "will " : "") + number(*sample));
                continue;
            }
            const rnet::Error& error = sample.error();
            const bool is_lost = error.code() == rnet::Code::peer_lost;
            words.push_back(is_lost ? "lost " + std::string(error.node()) : error.what());
            return words;
        }
    }

    std::vector<std::string> hear_log(std::size_t count) {
        if (!log_) {
            rnet::SubscriberOptions options;
            options.transient_local = true;
            options.keep_all = true;
            log_.emplace(node_.subscriber<rnet::msgs::foxglove::Log>("/log", options));
        }
        std::vector<std::string> words;
        for (; count > 0; --count) {
            const auto line = log_->recv_for(LONG);
            words.push_back(line->name + " " + LEVELS[static_cast<int>(line->level)] + " " + line->message);
        }
        return words;
    }

    rnet::Node& node_;
    std::optional<rnet::Publisher<>> publisher_;
    std::optional<rnet::Subscriber<>> subscriber_;
    std::optional<rnet::Subscriber<rnet::msgs::foxglove::Log>> log_;
};
