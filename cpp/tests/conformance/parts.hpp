// The service, action, command and work queue endpoints of an actor, and its steps on them: see parts.rs.
#pragma once

#include "common.hpp"

#include <rnet/action.hpp>
#include <rnet/command.hpp>
#include <rnet/queue.hpp>
#include <rnet/rnet.hpp>

#include <memory>
#include <optional>
#include <stdexcept>

/// The error of a handler. Callers get the name of its class.
struct TooMany : std::runtime_error {
    TooMany() : std::runtime_error("it counts no further") {}
};

class Parts {
public:
    explicit Parts(rnet::Node& node) : node_(node) {}

    json act(const json& step) {
        const auto [kind, given] = variant(step);
        if (kind == "Serve") {
            serve(given.at("backlog"));
        } else if (kind == "ServeGoals") {
            serve_goals(given.at("queue"), given.at("replace"));
        } else if (kind == "Call") {
            client_.emplace(rnet::Client<rnet::Bytes, rnet::Bytes>::open(node_, SERVICE));
            const std::size_t servers = given.at("servers");
            eventually("its servers are matched", [&] { return client_->server_count() == servers; });
        } else if (kind == "Begin") {
            rnet::CallOptions options;
            options.timeout = milliseconds(given.at("timeout_ms"));
            calls_.emplace_back(client_->stream(wire(given), options));
        } else if (kind == "Hear") {
            return said(hear(*calls_.at(given.at("call").get<std::size_t>())));
        } else if (kind == "Error") {
            auto& call = calls_.at(given.at("call").get<std::size_t>());
            while (call->next()) continue;
        } else if (kind == "Drop") {
            calls_.at(given.at("call").get<std::size_t>()).reset();
        } else if (kind == "Late") {
            const auto stats = client_->stats();
            return said({std::to_string(stats.late) + " late, " + std::to_string(stats.open) + " open"});
        } else if (kind == "Send") {
            if (!action_) action_.emplace(Actions::open(node_, ACTION));
            rnet::CallOptions options;
            options.timeout = LONG;
            goals_.push_back(action_->send(wire(given), options));
        } else if (kind == "Reach") {
            return said(reach(goals_.at(given.at("goal").get<std::size_t>())));
        } else if (kind == "CancelGoal") {
            goals_.at(given.at("goal").get<std::size_t>()).cancel();
        } else if (kind == "Served") {
            eventually("the call counts match", [&, given = given] {
                const auto now = service_->stats();
                return now.running == given.at("running") && now.waiting == given.at("waiting") &&
                       now.refused == given.at("refused") && now.cancelled == given.at("cancelled");
            });
        } else if (kind == "Said") {
            return words_.at_least(given.at("at_least"));
        } else if (kind == "Close") {
            service_.reset();
            command_.reset();
            puller_.reset();
        } else if (kind == "Leave") {
            calls_.clear();
            goals_.clear();
            client_.reset();
            action_.reset();
            driver_.reset();
            pusher_.reset();
        } else {
            return command_or_queue(kind, given);
        }
        return said();
    }

private:
    using Actions = rnet::ActionClient<rnet::Bytes, rnet::Bytes, rnet::Bytes>;
    static constexpr const char *SERVICE = "/count", *ACTION = "/turn", *COMMAND = "/wheels", *QUEUE = "/jobs";
    enum Then : std::uint8_t { RETURN, FAIL, WAIT };

    /// Bytes that live as long as the actor.
    rnet::Bytes wire(const json& given) {
        const std::string then = text(given, "then");
        wire_ = {given.at("count").get<std::uint8_t>(),
                 static_cast<std::uint8_t>(then == "Fail" ? FAIL : then == "Wait" ? WAIT : RETURN)};
        return wire_;
    }

    void serve(std::uint32_t backlog) {
        const auto handler = [this](rnet::Bytes request, rnet::Responder<rnet::Bytes>& responder) {
            words_.add("begun " + std::to_string(request[0]));
            for (std::uint8_t number = 0; number < request[0]; ++number) {
                responder.send(rnet::Bytes(&number, 1));
            }
            finish(request[1], responder);
        };
        rnet::ServiceOptions options;
        options.backlog = backlog;
        service_.emplace(rnet::serve_stream<rnet::Bytes, rnet::Bytes>(node_, SERVICE, handler, options));
    }

    void serve_goals(std::uint32_t queue, bool replace) {
        const auto handler = [this](rnet::Bytes goal, rnet::ActionContext<rnet::Bytes>& context) {
            words_.add("begun " + std::to_string(goal[0]));
            for (std::uint8_t number = 0; number < goal[0]; ++number) {
                context.feedback(rnet::Bytes(&number, 1));
            }
            finish(goal[1], context);
            return std::vector<std::uint8_t>(goal.begin(), goal.end());
        };
        rnet::ActionOptions options;
        options.policy = replace     ? rnet::GoalPolicy::replace
                         : queue > 0 ? rnet::GoalPolicy::queue
                                     : rnet::GoalPolicy::reject;
        options.queue = queue;
        service_.emplace(rnet::serve_action<rnet::Bytes, rnet::Bytes, rnet::Bytes>(node_, ACTION, handler, options));
    }

    /// The handler's action after its count.
    void finish(std::uint8_t then, const rnet::CallContext& context) {
        if (then == FAIL) throw TooMany();
        if (then != WAIT) return;
        while (!context.is_cancelled()) std::this_thread::sleep_for(1ms);  // sleep: polling interval
        words_.add(name_of(context.cancel_reason()));
    }

    json command_or_queue(const std::string& kind, const json& given) {
        if (kind == "Obey") {
            const auto fall_back = [this](rnet::FallbackReason why) { words_.add("fallback " + name_of(why)); };
            const auto apply = [this](rnet::Bytes value) { words_.add("applied " + std::to_string(value[0])); };
            rnet::CommandOptions options;
            options.deadline = milliseconds(given.at("deadline_ms"));
            command_.emplace(rnet::Command::receive<rnet::Bytes>(
                node_, COMMAND, apply, rnet::Fallback<rnet::Bytes>::handler(fall_back), options));
        } else if (kind == "Take") {
            rnet::DriverOptions options;
            options.priority = given.at("priority");
            options.lease = milliseconds(given.at("lease_ms"));
            options.timeout = LONG;
            driver_.emplace(rnet::Driver<rnet::Bytes>::take(node_, COMMAND, options));
        } else if (kind == "Drive") {
            const std::uint8_t value = given.at("value");
            driver_->send(rnet::Bytes(&value, 1));
        } else if (kind == "Release") {
            driver_->release();
            driver_.reset();
        } else if (kind == "Holder") {
            const std::string is = text(given, "is");
            eventually("the driver has authority", [&] { return command_->status().driver == is; });
        } else if (kind == "Push") {
            if (!pusher_) open_pusher();
            const std::uint8_t job = given.at("job");
            pusher_->push(rnet::Bytes(&job, 1));
        } else if (kind == "Pull") {
            puller_.emplace(rnet::Puller<rnet::Bytes>::open(node_, QUEUE));
        } else if (kind == "Job") {
            job_.emplace(puller_->recv_for(LONG));
            return said({"job " + std::to_string((**job_)[0]) + (job_->redelivered() ? " again" : "")});
        } else if (kind == "Acknowledge") {
            job_->ack();
            job_.reset();
        } else if (kind == "FailJob") {
            job_->fail("no", "Jammed");
            job_.reset();
        } else if (kind == "JobsDone") {
            pusher_->wait_until_done_for(LONG);
            const auto stats = pusher_->stats();
            return said({std::to_string(stats.done) + " done, " + std::to_string(stats.redelivered) +
                         " again, " + std::to_string(stats.undelivered) + " back"});
        } else {
            give_up("unknown part " + kind);
        }
        return said();
    }

    void open_pusher() {
        rnet::PusherOptions<rnet::Bytes> options;
        options.on_undelivered = [this](const rnet::Bytes& job, const rnet::Error& error) {
            words_.add("back " + std::to_string(job[0]) + " " + word_of(error));
        };
        pusher_.emplace(rnet::Pusher<rnet::Bytes>::open(node_, QUEUE, options));
    }

    static std::vector<std::string> hear(rnet::Pending<rnet::Bytes>& call) {
        std::vector<std::string> words;
        for (;;) {
            const auto reply = call.next(std::nothrow);
            if (!reply) {
                words.push_back(word_of(reply.error()));
            } else if (!reply->has_value()) {
                words.emplace_back("end");
            } else {
                words.push_back(std::to_string((***reply)[0]));
                continue;
            }
            return words;
        }
    }

    static std::vector<std::string> reach(rnet::Goal<rnet::Bytes, rnet::Bytes>& goal) {
        std::vector<std::string> words;
        for (;;) {
            const auto feedback = goal.feedback(std::nothrow);
            if (!feedback || !feedback->has_value()) break;
            words.push_back(std::to_string((***feedback)[0]));
        }
        const auto result = goal.result_for(LONG, std::nothrow);
        words.push_back(result ? "reached " + std::to_string((**result)[0]) : word_of(result.error()));
        return words;
    }

    /// An error as the behaviours compare it: its kind and its node.
    static std::string word_of(const rnet::Error& error) {
        const std::string node(error.node()), kind(error.kind()), detail(error.detail());
        if (error.code() == rnet::Code::call_failed) return "failed " + kind + " of " + node;
        if (error.code() == rnet::Code::cancelled) return "cancelled " + kind;
        if (error.code() == rnet::Code::refused && !detail.empty()) return "refused for " + detail;
        return std::string(rnet::name_of(error.code())) + (node.empty() ? "" : " " + node);
    }

    static std::string name_of(rnet::CancelReason reason) {
        const char* names[] = {"none",     "caller",    "caller_gone",    "timed_out",
                               "preempted", "server_closing", "operator", "unknown"};
        return names[static_cast<int>(reason)];
    }

    static std::string name_of(rnet::FallbackReason reason) {
        const char* names[] = {"none",        "opened",    "granted", "deadline", "expired", "released",
                               "driver_lost", "preempted", "overrun", "panicked", "closed",  "unknown"};
        return names[static_cast<int>(reason)];
    }

    // Destroyed in reverse order: calls before their clients.
    rnet::Node& node_;
    Words words_;
    std::vector<std::uint8_t> wire_;
    std::optional<rnet::Pusher<rnet::Bytes>> pusher_;
    std::optional<rnet::Puller<rnet::Bytes>> puller_;
    std::optional<rnet::Job<rnet::Bytes>> job_;
    std::optional<rnet::Command> command_;
    std::optional<rnet::Driver<rnet::Bytes>> driver_;
    std::optional<rnet::Service> service_;
    std::optional<Actions> action_;
    std::vector<rnet::Goal<rnet::Bytes, rnet::Bytes>> goals_;
    std::optional<rnet::Client<rnet::Bytes, rnet::Bytes>> client_;
    std::vector<std::optional<rnet::Pending<rnet::Bytes>>> calls_;
};
