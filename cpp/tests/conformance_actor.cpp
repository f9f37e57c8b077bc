// An actor of the conformance suite (crates/rnet/tests/it/conformance): a process that executes the steps of a
// test, one JSON object per line, and answers each with its outcome.
#include "conformance/keys.hpp"
#include "conformance/parts.hpp"
#include "conformance/talks.hpp"
#include "conformance/typed.hpp"

#include <rnet/hooks.hpp>
#include <rnet/stats.hpp>

#include <condition_variable>
#include <cstring>
#include <map>

namespace {

/// Marks the lines of the actor among other output.
const char MARK[] = "@@";
// content() and digest() are those of content.rs.
std::vector<std::uint8_t> content(std::uint64_t tag, std::uint64_t index, std::size_t len) {
    std::uint64_t state = (tag * 0x9e3779b97f4a7c15u) ^ index ^ (std::uint64_t(len) << 32);
    std::vector<std::uint8_t> bytes(len);
    for (std::size_t at = 0; at * 8 < len; ++at) {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        const std::uint64_t value = at == 0 ? tag : at == 1 ? index : state * 0x2545f4914f6cdd1du;
        std::memcpy(&bytes[at * 8], &value, std::min<std::size_t>(8, len - at * 8));
    }
    return bytes;
}

std::uint64_t digest(rnet::Bytes bytes) {
    std::uint64_t sum = bytes.size();
    for (std::size_t at = 0; at < bytes.size(); at += 8) {
        std::uint64_t word = 0;
        std::memcpy(&word, bytes.data() + at, std::min<std::size_t>(8, bytes.size() - at));
        sum = (sum ^ word) * 0x00000100000001b3u;
        sum = sum << 17 | sum >> 47;
    }
    return sum;
}

/// A duration of serde.
nanoseconds duration(const json& given) {
    return std::chrono::seconds(given.at("secs").get<std::int64_t>()) +
           nanoseconds(given.at("nanos").get<std::int64_t>());
}

std::optional<nanoseconds> optional_duration(const json& qos, const char* name) {
    const json& given = qos.value(name, json());
    return given.is_null() ? std::nullopt : std::optional(duration(given));
}

/// The lease of `liveliness`: "automatic", or {"manual_by_topic": {"lease": …}}.
std::optional<nanoseconds> lease(const json& qos) {
    const json given = qos.value("liveliness", json("automatic"));
    if (!given.is_object()) return std::nullopt;
    return duration(given.at("manual_by_topic").at("lease"));
}

rnet::PublisherOptions publisher_options(const json& qos) {
    rnet::PublisherOptions options;
    options.urgent = qos.at("lane") == "urgent";
    options.reliable = qos.at("reliability") == "reliable";
    if (options.reliable) {
        const json& on_full = qos.at("on_full");
        if (on_full == "refuse") {
            options.on_full = rnet::OnFull::refuse;
        } else if (on_full.contains("wait")) {
            options.full_timeout = duration(on_full.at("wait"));
        } else {
            options.on_full = rnet::OnFull::detach;
            options.full_timeout = duration(on_full.at("detach").at("stall"));
        }
    }
    const json& durability = qos.at("durability");
    if (durability.is_object()) options.transient_local = durability.at("transient_local").at("depth");
    options.log_len_bytes = qos.at("log_len_bytes");
    options.reserve_log = qos.at("reserve_log");
    options.pool_limit_bytes = qos.at("pool_limit_bytes");
    options.large_depth = qos.at("large_depth");
    options.deadline = optional_duration(qos, "deadline");
    options.lifespan = optional_duration(qos, "lifespan");
    options.liveliness_lease = lease(qos);
    return options;
}

rnet::SubscriberOptions subscriber_options(const json& qos) {
    rnet::SubscriberOptions options;
    const json& lane = qos.at("lane");
    if (!lane.is_null()) options.lane = lane == "urgent" ? rnet::Lane::urgent : rnet::Lane::bulk;
    options.reliable = qos.at("reliability") == "reliable";
    options.transient_local = qos.at("transient_local");
    const json& history = qos.at("history");
    if (history.is_object()) options.keep_last = history.at("keep_last");
    options.keep_all = history == "keep_all";
    options.wait = qos.at("wait") == "spin"    ? rnet::Wait::spin
                   : qos.at("wait") == "block" ? rnet::Wait::block
                                               : rnet::Wait::adaptive;
    options.deadline = optional_duration(qos, "deadline");
    options.liveliness_lease = lease(qos);
    return options;
}

template <class Sample>
json message(const Sample& sample) {
    const rnet::Bytes bytes = sample.bytes();
    return {{"publisher", sample.publisher()},
            {"seq", sample.seq()},
            {"len", bytes.size()},
            {"digest", digest(bytes)}};
}

json failed(const rnet::Error& error, std::uint64_t after) {
    return {{"Failed",
             {{"code", std::string(rnet::name_of(error.code()))}, {"text", error.what()}, {"after", after}}}};
}

class Actor {
public:
    explicit Actor(const std::string& name) {
        rnet::NodeOptions options;
        options.domain = "t";
        options.dir = std::getenv("RNET_TEST_DIR");
        options.state_dir = options.dir + "/keep";
        node_ = std::make_unique<rnet::Node>(name, options);
    }

    json act(const json& step) {
        const auto [kind, given] = variant(step);
        after_ = 0;
        try {
            return run(kind, given);
        } catch (const rnet::Error& error) {
            return failed(error, after_);
        }
    }

private:
    json run(const std::string& kind, const json& given) {
        if (kind == "Publish") {
            publisher_.emplace(node_->publisher(given.at("topic").get<std::string>(),
                                                publisher_options(given.at("qos"))));
        } else if (kind == "Subscribe") {
            subscriber_.emplace(node_->subscriber(given.at("topic").get<std::string>(),
                                                  subscriber_options(given.at("qos"))));
        } else if (kind == "Watch") {
            watch();
        } else if (kind == "Events") {
            return events(given.at("at_least"));
        } else if (kind == "WaitSubscribers") {
            publisher_->wait_for_subscribers_for(given.at("n"), milliseconds(given.at("timeout_ms")));
        } else if (kind == "WaitPublishers") {
            subscriber_->wait_for_publishers_for(given.at("n"), milliseconds(given.at("timeout_ms")));
        } else if (kind == "Count") {
            const std::size_t subscribers = publisher_ ? publisher_->subscriber_count() : 0;
            return {{"Count", subscribers + (subscriber_ ? subscriber_->publisher_count() : 0)}};
        } else if (kind == "Send") {
            for (const std::uint64_t count = given.at("count"); after_ < count; ++after_) {
                const std::uint64_t from = given.at("from");
                publisher_->send(content(given.at("tag"), from + after_, given.at("len")));
            }
        } else if (kind == "LoanAndDrop") {
            auto loan = publisher_->loan(given.at("len").get<std::size_t>());
            std::memset(loan.data(), 0xee, loan.size());
        } else if (kind == "LoanUntilRefused") {
            return loan_until_refused(given);
        } else if (kind == "Receive") {
            return receive(given);
        } else if (kind == "MessageCounts") {
            return counts(given);
        } else if (kind == "TryReceive") {
            const auto sample = subscriber_->try_recv();
            return {{"ReceivedMessage", sample ? json::array({message(*sample)}) : json::array()}};
        } else if (kind == "Latest") {
            const auto sample = subscriber_->latest_for(milliseconds(given.at("timeout_ms")));
            return {{"ReceivedMessage", json::array({message(sample)})}};
        } else if (kind == "CheckHeld") {
            json digests = json::array();
            for (const auto& sample : held_) digests.push_back(digest(sample.bytes()));
            return {{"Digests", digests}};
        } else if (kind == "DropHeld") {
            held_.erase(held_.begin() + given.at("leave").get<long>(), held_.end());
        } else if (kind == "CloseEndpoints") {
            publisher_.reset();
            subscriber_.reset();
        } else if (kind == "CloseNode") {
            guards_.clear();
            node_.reset();
        } else if (kind == "Part") {
            return part(parts_, given);
        } else if (kind == "Talk") {
            return part(talks_, given);
        } else if (kind == "Key") {
            return part(keys_, given);
        } else if (kind == "Typed") {
            return part(typed_, given);
        } else {
            give_up("unknown step " + kind);
        }
        return "Done";
    }

    /// Executes a step of a part of the actor, which is made for its first one.
    template <class P>
    json part(std::optional<P>& part, const json& step) {
        if (!part) part.emplace(*node_);
        return part->act(step);
    }

    json receive(const json& given) {
        json all = json::array();
        for (const std::size_t count = given.at("count"); after_ < count; ++after_) {
            auto sample = subscriber_->recv_for(milliseconds(given.at("timeout_ms")));
            all.push_back(message(sample));
            if (given.at("hold").get<bool>()) held_.push_back(std::move(sample));
        }
        return {{"ReceivedMessage", all}};
    }

    json loan_until_refused(const json& given) {
        const std::uint64_t tag = given.at("tag"), from = given.at("from");
        const std::size_t len = given.at("len");
        const auto refused = [](std::uint64_t sent, bool intact) -> json {
            return {{"Refused", {{"sent", sent}, {"intact", intact}}}};
        };
        for (;; ++after_) {
            const auto bytes = content(tag, from + after_, len);
            auto loan = publisher_->loan(len, std::nothrow);
            // No loan succeeded, so no content has to come back.
            if (!loan && loan.error().code() == rnet::Code::full) return refused(after_, true);
            std::memcpy(loan.value().data(), bytes.data(), len);
            const auto sent = loan->send(std::nothrow);
            if (!sent && sent.error().code() == rnet::Code::full) {
                return refused(after_, std::memcmp(loan->data(), bytes.data(), len) == 0);
            }
            sent.value();
        }
    }

    /// Each message must match the content that its number and its stream's tag (its first word) define.
    json counts(const json& given) {
        std::uint64_t wrong = 0;
        std::vector<std::string> errors;
        std::map<std::uint64_t, std::uint64_t> next;
        for (;;) {
            auto sample = subscriber_->recv_view_for(200ms, std::nothrow);
            if (sample) {
                const rnet::Bytes bytes = sample->bytes();
                std::uint64_t tag = 0;
                std::memcpy(&tag, bytes.data(), 8);
                const auto right = content(tag, sample->seq(), bytes.size());
                std::uint64_t& expected = next[sample->publisher()];
                wrong += sample->seq() < expected || std::memcmp(right.data(), bytes.data(), bytes.size()) != 0;
                expected = sample->seq() + 1;
            } else if (sample.error().code() != rnet::Code::timeout) {
                errors.emplace_back(rnet::name_of(sample.error().code()));
                continue;
            }
            std::uint64_t received = 0, skipped = 0;
            for (const auto& stats : rnet::stats(*subscriber_)) {
                received += stats.received;
                skipped += stats.skipped;
            }
            const rnet::LossCounts lost = subscriber_->lost();
            if (received + skipped + lost.total() >= given.at("accounted").get<std::uint64_t>()) {
                const json lost_json = {{"overrun", lost.overrun},
                                        {"link", lost.link},
                                        {"restart", lost.restart},
                                        {"detached", lost.detached}};
                return {{"MessageCounts",
                         {{"received", received},
                          {"lost", lost_json},
                          {"skipped", skipped},
                          {"wrong", wrong},
                          {"errors", errors}}}};
            }
            const std::chrono::microseconds pause(given.at("pause_us").get<long>());
            std::this_thread::sleep_for(pause);  // sleep: simulates a slow reader
        }
    }

    void watch() {
        const auto note = [this](const rnet::MatchEvent& event) {
            const char* word = event.kind() == rnet::MatchKind::matched     ? "matched "
                               : event.kind() == rnet::MatchKind::unmatched ? "unmatched "
                               : event.kind() == rnet::MatchKind::lost      ? "lost "
                                                                            : "other ";
            const std::lock_guard lock(mutex_);
            events_.push_back(word + std::string(event.node()));
            changed_.notify_all();
        };
        if (publisher_) guards_.push_back(rnet::on_match(*publisher_, note));
        if (subscriber_) guards_.push_back(rnet::on_match(*subscriber_, note));
    }

    json events(std::size_t at_least) {
        std::unique_lock lock(mutex_);
        changed_.wait_for(lock, LONG, [&] { return events_.size() >= at_least; });
        return {{"Events", events_}};
    }

    // Dropped in reverse order: samples outlive their subscriber only if a step requires it.
    std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<std::string> events_;
    std::unique_ptr<rnet::Node> node_;
    std::vector<rnet::Sample<>> held_;
    std::vector<rnet::Guard> guards_;
    std::optional<rnet::Subscriber<>> subscriber_;
    std::optional<rnet::Publisher<>> publisher_;
    std::optional<Parts> parts_;
    std::optional<Talks> talks_;
    std::optional<Keys> keys_;
    std::optional<Typed> typed_;
    /// Messages before an error.
    std::uint64_t after_ = 0;
};

}  // namespace

int main() {
    Actor actor(std::getenv("RNET_TEST_ROLE"));
    for (std::string line; std::getline(std::cin, line);) {
        std::cout << MARK << actor.act(json::parse(line)).dump() << std::endl;
    }
}
