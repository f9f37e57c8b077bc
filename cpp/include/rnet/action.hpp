// Actions: a client sends a goal, the server sends feedback and finally a result. A goal can be cancelled.
//
//     auto move = [](const Pose& to, auto& context) {
//         while (!context.is_cancelled() && !reached(to)) context.feedback(progress());
//         return Outcome{};
//     };
//     auto action = rnet::serve_action<Pose, Progress, Outcome>(node, "/move", move);
//     auto mover = rnet::ActionClient<Pose, Progress, Outcome>::open(node, "/move");
//     auto goal = mover.send(there);
//     while (auto progress = goal.feedback()) show(**progress);
//     auto result = goal.result();
#pragma once

#include <rnet/service.hpp>

namespace rnet {

/// What an action does with a goal that arrives while another one runs.
enum class GoalPolicy : int {
    /// Refuses it, with Code::refused.
    reject = RNET_GOAL_REJECT,
    /// Queues it; see ActionOptions::queue.
    queue = RNET_GOAL_QUEUE,
    /// Cancels the earlier goals; the new one begins when the handler of the running one has returned.
    replace = RNET_GOAL_REPLACE,
};

/// Options of serve_action().
struct ActionOptions {
    GoalPolicy policy = GoalPolicy::reject;
    /// For GoalPolicy::queue: how many goals may wait, 1 to 65,536.
    std::uint32_t queue = 0;
};

/// A goal, for its handler while it runs.
template <class F>
class ActionContext : public CallContext {
public:
    using CallContext::CallContext;

    /// Sends feedback. Code::cancelled: the goal was cancelled.
    template <class M = F>
    void feedback(const M& feedback) {
        this->feedback(feedback, std::nothrow).value();
    }
    template <class M = F>
    Result<void> feedback(const M& feedback, std::nothrow_t) {
        return detail::send_to_caller<F>(handle(), feedback, buffer_);
    }

private:
    std::vector<std::uint8_t> buffer_;
};

namespace detail {

/// The types of an action, and its options with them.
template <class G, class F, class R>
class ActionTypes {
public:
    Result<rnet_action_options> options() {
        auto goal = type_of<G>();
        if (!goal) return goal.error();
        auto feedback = type_of<F>();
        if (!feedback) return feedback.error();
        auto result = type_of<R>();
        if (!result) return result.error();
        goal_ = *std::move(goal);
        feedback_ = *std::move(feedback);
        result_ = *std::move(result);
        auto given = initialised<rnet_action_options>();
        given.goal_type = goal_.handle();
        given.feedback_type = feedback_.handle();
        given.result_type = result_.handle();
        return given;
    }

private:
    Type goal_, feedback_, result_;
};

}  // namespace detail

/// Serves an action: `handler` is R(const G&) or R(const G&, ActionContext<F>&), and processes one goal at a
/// time.
template <class G, class F, class R, class N, class H>
Result<Service> serve_action(const N& node, std::string_view name, H handler, const ActionOptions& options,
                             std::nothrow_t) {
    auto run = [](rnet_request* request, void* context) {
        detail::with_request<G>(request, [&](const G& goal) {
            ActionContext<F> state(request);
            detail::answer<R>(request, [&]() -> decltype(auto) {
                return detail::call_handler(*static_cast<H*>(context), goal, state);
            });
        });
    };
    detail::ActionTypes<G, F, R> types;
    auto given = types.options();
    if (!given) return given.error();
    given->policy = static_cast<int>(options.policy);
    given->queue = options.queue;
    return detail::made_by<Service>(rnet_action_new, node.handle(), detail::CText(name), &*given, run,
                                    detail::context_of(std::move(handler)), detail::free_context<H>);
}
template <class G, class F, class R, class N, class H>
Service serve_action(const N& node, std::string_view name, H handler, const ActionOptions& options = {}) {
    return serve_action<G, F, R>(node, name, std::move(handler), options, std::nothrow).value();
}

/// A goal that was sent. Any thread may use it. The end of its life cancels it.
template <class F, class R>
class Goal {
public:
    explicit Goal(rnet_goal* goal) noexcept : handle_(goal) {}

    /// Waits for the next feedback; none once the goal has ended.
    std::optional<Received<F>> feedback() { return feedback(std::nothrow).value(); }
    Result<std::optional<Received<F>>> feedback(std::nothrow_t) { return feedback_ns(RNET_FOREVER); }
    /// As feedback(), for a time; then Code::timeout.
    std::optional<Received<F>> feedback_for(detail::TimeLimit limit) {
        return feedback_for(limit, std::nothrow).value();
    }
    Result<std::optional<Received<F>>> feedback_for(detail::TimeLimit limit, std::nothrow_t) {
        return feedback_ns(limit.ns());
    }

    /// Waits for the result, which is given once.
    Received<R> result() { return result(std::nothrow).value(); }
    Result<Received<R>> result(std::nothrow_t) { return result_ns(RNET_FOREVER); }
    /// As result(), for a time: after Code::timeout the goal continues, unless its own time limit is over.
    Received<R> result_for(detail::TimeLimit limit) { return result_for(limit, std::nothrow).value(); }
    Result<Received<R>> result_for(detail::TimeLimit limit, std::nothrow_t) {
        return result_ns(limit.ns());
    }
    /// As result(), and calls `on_feedback` with each feedback before it, on this thread.
    template <class OnFeedback>
    Received<R> result_with(OnFeedback&& on_feedback) {
        return result_with(std::forward<OnFeedback>(on_feedback), std::nothrow).value();
    }
    template <class OnFeedback>
    Result<Received<R>> result_with(OnFeedback&& on_feedback, std::nothrow_t) {
        for (;;) {
            auto one = feedback(std::nothrow);
            if (!one) return one.error();
            if (!one->has_value()) return result(std::nothrow);
            on_feedback(***one);
        }
    }

    /// Asks the server to cancel it: it ends with Code::cancelled once its handler has returned.
    void cancel() { cancel(std::nothrow).value(); }
    Result<void> cancel(std::nothrow_t) {
        return detail::success_of(rnet_goal_cancel, handle());
    }
    rnet_goal* handle() const noexcept { return handle_.get(); }

private:
    Result<std::optional<Received<F>>> feedback_ns(std::int64_t limit) {
        return detail::received_or_end<F>(rnet_goal_feedback, handle(), limit);
    }
    Result<Received<R>> result_ns(std::int64_t limit) {
        return detail::received_by<R>(rnet_goal_result, handle(), limit);
    }

    detail::Handle<rnet_goal, rnet_goal_free> handle_;
};

/// Sends goals to one action. Any thread may use it, with any number of goals at a time.
template <class G, class F, class R>
class ActionClient {
public:
    /// Opens a client; its servers may start later.
    template <class N>
    static Result<ActionClient> open(const N& node, std::string_view name, std::nothrow_t) {
        detail::ActionTypes<G, F, R> types;
        auto given = types.options();
        if (!given) return given.error();
        return detail::made_by<ActionClient>(rnet_action_client_new, node.handle(), detail::CText(name),
                                             &*given);
    }
    template <class N>
    static ActionClient open(const N& node, std::string_view name) {
        return open(node, name, std::nothrow).value();
    }
    explicit ActionClient(rnet_action_client* client) noexcept : handle_(client) {}

    /// Sends a goal, without waiting. If no server exists, it goes to the first that starts.
    Goal<F, R> send(const G& goal, const CallOptions& options = {}) const {
        return send(goal, options, std::nothrow).value();
    }
    Result<Goal<F, R>> send(const G& goal, const CallOptions& options, std::nothrow_t) const {
        const detail::Encoded<G> bytes(goal);
        auto given = detail::call_options(options);
        return detail::made_by<Goal<F, R>>(rnet_action_client_send, handle(), bytes.data(), bytes.size(),
                                           &given);
    }

    /// Asks all servers of the action to cancel all goals, of every client; returns the number of servers.
    std::size_t cancel_all() const { return cancel_all(std::nothrow).value(); }
    Result<std::size_t> cancel_all(std::nothrow_t) const {
        return detail::result_of<std::size_t>(rnet_action_client_cancel_all, handle());
    }
    /// The name of the action, with its leading slash.
    std::string_view name() const& noexcept { return rnet_action_client_name(handle()); }
    std::string name() && { return std::string(name()); }
    /// Number of servers that would accept or refuse a goal now.
    std::size_t server_count() const { return server_count(std::nothrow).value(); }
    Result<std::size_t> server_count(std::nothrow_t) const {
        return detail::server_count(stats(std::nothrow));
    }
    /// Its counters.
    rnet_client_stats stats() const { return stats(std::nothrow).value(); }
    Result<rnet_client_stats> stats(std::nothrow_t) const {
        return detail::filled_by<rnet_client_stats>(rnet_action_client_get_stats, handle());
    }
    /// Closes it: its goals are cancelled and end with Code::closed.
    void close() noexcept { rnet_action_client_close(handle()); }
    rnet_action_client* handle() const noexcept { return handle_.get(); }

private:
    detail::Handle<rnet_action_client, rnet_action_client_free> handle_;
};

}  // namespace rnet
