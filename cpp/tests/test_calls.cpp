#include "calls.hpp"

#include <rnet/action.hpp>
#include <rnet/queue.hpp>

#include <sys/wait.h>

using namespace rnet;
using RawActions = ActionClient<Bytes, Bytes, Bytes>;
using RawPusher = Pusher<Bytes>;
using RawPuller = Puller<Bytes>;

namespace {

/// A goal handler that waits until the goal is cancelled, and records why.
struct UntilCancelled {
    std::shared_ptr<Gate> begun = std::make_shared<Gate>();
    std::shared_ptr<std::atomic<int>> reason = std::make_shared<std::atomic<int>>(0);
    std::string operator()(Bytes, ActionContext<Bytes>& context) const {
        begun->open();
        CHECK(becomes([&] { return context.cancel_reason() != CancelReason::none; }));
        *reason = static_cast<int>(context.cancel_reason());
        return "too late";
    }
};

}  // namespace

TEST("a goal has feedback and a result") {
    TestNode node("mover");
    auto action = serve_action<Number, Number, Text>(node, "/move", [](const Number& goal, auto& context) {
        for (int i = 1; i <= goal.x; ++i) context.feedback(Number{double(i)});
        return Text{"there"};
    });
    auto mover = ActionClient<Number, Number, Text>::open(node, "/move");
    auto goal = mover.send(Number{3});
    double sum = 0;
    while (auto step = goal.feedback_for(LIMIT)) sum += (*step)->x;
    CHECK(sum == 6);
    CHECK(goal.result_for(LIMIT)->text == "there");
    CHECK(code_of([&] { goal.result(); }) == Code::closed);
    sum = 0;
    auto result = mover.send(Number{4}).result_with([&](const Number& step) { sum += step.x; });
    CHECK(sum == 10 && result->text == "there");
    CHECK(mover.name() == "/move" && mover.server_count() == 1 && mover.stats().calls == 2);
    CHECK(action.stats().calls == 2);
}

TEST("a goal is cancelled, and its handler learns why") {
    TestNode node("mover");
    UntilCancelled handler;
    auto action = serve_action<Bytes, Bytes, Bytes>(node, "/turn", handler);
    auto mover = RawActions::open(node, "/turn");
    auto goal = mover.send(bytes_of("left"));
    CHECK(code_of([&] { goal.feedback_for(0ns); }) == Code::timeout);
    CHECK(becomes([&] {
        CHECK(code_of([&] { goal.result_for(1ms); }) == Code::timeout);
        return handler.begun->is_open();
    }));
    goal.cancel();
    auto result = goal.result_for(LIMIT, std::nothrow);
    CHECK(!result && result.error().code() == Code::cancelled && result.error().kind() == "caller");
    CHECK(*handler.reason == static_cast<int>(CancelReason::caller));
    auto other = mover.send(bytes_of("right"));
    CHECK(becomes([&] {
        (void)other.result_for(0ns, std::nothrow);
        return action.stats().running == 1;
    }));
    CHECK(mover.cancel_all() == 1);
    auto stopped = other.result_for(LIMIT, std::nothrow);
    CHECK(!stopped && stopped.error().kind() == "operator");
}

TEST("feedback of a cancelled goal ends its handler with an exception") {
    TestNode node("mover");
    Gate ended;
    auto action = serve_action<Bytes, Bytes, Bytes>(node, "/move", [&](Bytes, ActionContext<Bytes>& context) {
        try {
            for (;;) context.feedback("step");
        } catch (const Error& error) {
            CHECK(error.code() == Code::cancelled);
            ended.open();
            throw;
        }
        return std::string();
    });
    auto goal = RawActions::open(node, "/move").send(bytes_of("x"));
    CHECK(goal.feedback_for(LIMIT));
    goal.cancel();
    CHECK(code_of([&] { goal.result_for(LIMIT); }) == Code::cancelled);
    CHECK(ended.wait());
}

TEST("the policy decides about a second goal") {
    TestNode node("mover");
    for (GoalPolicy policy : {GoalPolicy::reject, GoalPolicy::queue, GoalPolicy::replace}) {
        Gate gate;
        std::atomic<int> preempted{0};
        ActionOptions options;
        options.policy = policy;
        options.queue = policy == GoalPolicy::queue ? 1 : 0;
        auto action = serve_action<Bytes, Bytes, Bytes>(node, "/move", [&](Bytes goal, auto& context) {
            auto is_first = text_of(goal) == "first";
            if (is_first && policy == GoalPolicy::replace) {
                CHECK(becomes([&] { return context.is_cancelled(); }));
                preempted += context.cancel_reason() == CancelReason::preempted;
            } else if (is_first) {
                CHECK(gate.wait());
            }
            return std::string(text_of(goal));
        }, options);
        auto mover = RawActions::open(node, "/move");
        auto first = mover.send(bytes_of("first"));
        CHECK(becomes([&] {
            (void)first.result_for(0ns, std::nothrow);
            return action.stats().running == 1;
        }));
        auto second = mover.send(bytes_of("second"));
        if (policy == GoalPolicy::reject) {
            CHECK(code_of([&] { second.result_for(LIMIT); }) == Code::refused);
        } else if (policy == GoalPolicy::queue) {
            CHECK(becomes([&] { return action.stats().waiting == 1; }));
        }
        gate.open();
        if (policy == GoalPolicy::replace) {
            CHECK(code_of([&] { first.result_for(LIMIT); }) == Code::cancelled && preempted == 1);
        } else {
            CHECK(first.result_for(LIMIT).text() == "first");
        }
        if (policy != GoalPolicy::reject) CHECK(second.result_for(LIMIT).text() == "second");
    }
    ActionOptions bad;
    bad.queue = 3;
    auto handler = [](Bytes) { return std::string(); };
    CHECK(code_of([&] { (serve_action<Bytes, Bytes, Bytes>(node, "/bad", handler, bad)); }) ==
          Code::bad_value);
    bad = {GoalPolicy::queue, 0};
    CHECK(code_of([&] { (serve_action<Bytes, Bytes, Bytes>(node, "/bad", handler, bad)); }) ==
          Code::bad_value);
}

TEST("failures of a goal") {
    TestNode node("mover");
    auto action = serve_action<Bytes, Bytes, Bytes>(node, "/fail", [](Bytes) -> std::string {
        throw std::runtime_error("no way");
    });
    auto failed = RawActions::open(node, "/fail").send(bytes_of("x")).result_for(LIMIT, std::nothrow);
    CHECK(!failed && failed.error().code() == Code::call_failed && failed.error().detail() == "no way");
    CHECK(failed.error().kind() == "std::runtime_error");
    rnet_service* server = nullptr;
    auto silent = [](rnet_request* request, void*) {
        CHECK(rnet_request_end(request, nullptr) == RNET_INVALID_ARGUMENT);
    };
    CHECK(rnet_action_new(node.handle(), "/c", nullptr, silent, nullptr, nullptr, &server, nullptr) ==
          RNET_OK);
    auto none = RawActions::open(node, "/c").send(bytes_of("x")).result_for(LIMIT, std::nothrow);
    CHECK(!none && none.error().kind() == "not_answered");
    rnet_service_free(server);
    CallOptions soon;
    soon.timeout = 20ms;
    auto late = RawActions::open(node, "/nobody").send(bytes_of("x"), soon);
    CHECK(code_of([&] { late.result(); }) == Code::timeout);
}

TEST("closing the node or the client ends waits for goals") {
    TestNode server("server");
    UntilCancelled handler;
    ActionOptions options;
    options.policy = GoalPolicy::queue;
    options.queue = 4;
    auto action = serve_action<Bytes, Bytes, Bytes>(server, "/turn", handler, options);
    TestNode node("caller", server.domain());
    auto mover = RawActions::open(node, "/turn");
    auto first = mover.send(bytes_of("1")), second = mover.send(bytes_of("2"));
    auto result = std::async(std::launch::async, [&] { return code_of([&] { first.result(); }); });
    auto feedback = std::async(std::launch::async, [&] { return code_of([&] { second.feedback(); }); });
    CHECK(handler.begun->wait());
    node.close();
    CHECK(result.wait_for(LIMIT) == std::future_status::ready && result.get() == Code::closed);
    CHECK(feedback.wait_for(LIMIT) == std::future_status::ready);
    auto code = feedback.get();
    CHECK(code == Code::closed || code == Code::ok);
    CHECK(code_of([&] { first.cancel(); }) == Code::closed);
    CHECK(code_of([&] { mover.send(bytes_of("3")); }) == Code::closed);
    TestNode other("other", server.domain());
    auto client = RawActions::open(other, "/turn");
    auto goal = client.send(bytes_of("4"));
    client.close();
    CHECK(code_of([&] { goal.result_for(LIMIT); }) == Code::closed);
}

TEST("a job goes to a worker, which acknowledges it") {
    TestNode node("queue");
    auto worker = Puller<Text>::open(node, "/jobs");
    auto jobs = Pusher<Text>::open(node, "/jobs");
    CHECK(!worker.try_recv());
    CHECK(code_of([&] { worker.recv_for(1ms); }) == Code::timeout);
    jobs.push(Text{"sweep"});
    auto job = worker.recv_for(LIMIT);
    CHECK(job->text == "sweep" && job.pusher() == "/queue" && !job.redelivered() && !job.is_cancelled());
    CHECK(jobs.stats().open == 1);
    CHECK(code_of([&] { jobs.wait_until_done_for(1ms); }) == Code::timeout);
    job.ack();
    CHECK(code_of([&] { job.ack(); }) == Code::closed);
    CHECK(code_of([&] { job.fail("why"); }) == Code::closed);
    CHECK(job.is_cancelled());
    jobs.wait_until_done_for(LIMIT);
    CHECK(jobs.stats().done == 1 && jobs.worker_count() == 1 && worker.stats().calls == 1);
    CHECK(jobs.name() == "/jobs" && worker.name() == "/jobs");
}

TEST("failed, dropped and malformed jobs are returned to the pusher") {
    TestNode node("queue");
    std::mutex mutex;
    std::vector<std::string> back;
    PusherOptions<Text> options;
    options.on_undelivered = [&](const Text& job, const Error& error) {
        std::lock_guard<std::mutex> lock(mutex);
        back.push_back(job.text + ":" + std::string(error.kind()) + ":" + std::string(error.detail()));
        throw std::runtime_error("counted, and the other jobs continue");
    };
    auto jobs = Pusher<Text>::open(node, "/jobs", options);
    auto worker = Puller<Text>::open(node, "/jobs");
    for (auto job : {"fail", "drop", "done"}) jobs.push(Text{job});
    worker.recv_for(LIMIT).fail("it is locked", "locked");
    { auto dropped = worker.recv_for(LIMIT); }
    worker.recv_for(LIMIT).ack();
    jobs.wait_until_done_for(LIMIT);
    auto raw = RawPusher::open(node, "/jobs");
    raw.push(bytes_of("malformed"));
    raw.push(bytes_of("fine"));
    auto fine = worker.recv_for(LIMIT);
    CHECK(fine->text == "fine");
    fine.ack();
    raw.wait_until_done_for(LIMIT);
    CHECK(raw.stats().undelivered == 1 && raw.stats().done == 1);
    std::lock_guard<std::mutex> lock(mutex);
    CHECK(back.size() == 2 && back[0] == "fail:locked:it is locked");
    CHECK(back[1].rfind("drop:not_acknowledged:", 0) == 0);
    CHECK(jobs.stats().undelivered == 2 && jobs.stats().done == 1);
}

TEST("the job of a worker that closes goes to another one") {
    TestNode node("queue");
    auto jobs = RawPusher::open(node, "/jobs");
    auto first = RawPuller::open(node, "/jobs");
    jobs.push(bytes_of("sweep"));
    auto job = first.recv_for(LIMIT);
    first.close();
    CHECK(job.is_cancelled());
    auto second = RawPuller::open(node, "/jobs");
    auto again = second.recv_for(LIMIT);
    CHECK(text_of(*again) == "sweep" && again.redelivered());
    (void)job.ack(std::nothrow);
    again.ack();
    jobs.wait_until_done_for(LIMIT);
    CHECK(jobs.stats().redelivered == 1 && jobs.stats().done == 1);
}

TEST("a worker with a handler") {
    TestNode node("queue");
    std::atomic<int> done{0}, redelivered{0};
    auto worker = pull<Text>(node, "/jobs", [&](const Text& job, CallContext& context) {
        if (job.text == "bad") throw std::runtime_error("bad job");
        CHECK(context.caller() == "/queue");
        redelivered += context.redelivered();
        ++done;
    });
    std::atomic<int> back{0};
    PusherOptions<Text> options;
    options.on_undelivered = [&](const Text& job, const Error& error) {
        back += job.text == "bad" && error.code() == Code::call_failed && error.detail() == "bad job";
    };
    auto jobs = Pusher<Text>::open(node, "/jobs", options);
    for (auto job : {"a", "bad", "b"}) jobs.push(Text{job});
    jobs.wait_until_done_for(LIMIT);
    CHECK(done == 2 && back == 1 && redelivered == 0);
    CHECK(becomes([&] { return worker.stats().calls == 3; }));
}

TEST("a full backlog refuses, or waits for capacity") {
    TestNode node("queue");
    PusherOptions<Bytes> options;
    options.backlog = 1;
    auto jobs = RawPusher::open(node, "/jobs", options);
    jobs.push(bytes_of("1"));
    CHECK(code_of([&] { jobs.push(bytes_of("2")); }) == Code::limit_reached);
    CHECK(code_of([&] { jobs.push_for(bytes_of("2"), 1ms); }) == Code::limit_reached);
    auto push = [&] { jobs.push_for(bytes_of("2"), LIMIT); };
    auto pushed = std::async(std::launch::async, [&] { return code_of(push); });
    auto worker = RawPuller::open(node, "/jobs");
    worker.recv_for(LIMIT).ack();
    CHECK(pushed.wait_for(LIMIT) == std::future_status::ready && pushed.get() == Code::ok);
    worker.recv_for(LIMIT).ack();
    jobs.wait_until_done_for(LIMIT);
    options.backlog = 100000;
    CHECK(code_of([&] { RawPusher::open(node, "/jobs", options); }) == Code::bad_value);
}

TEST("closing the node ends the waits of pushers and workers, and returns the jobs") {
    TestNode node("queue");
    std::atomic<int> returned{0};
    PusherOptions<Bytes> options;
    options.backlog = 1;
    options.on_undelivered = [&](const Bytes&, const Error& error) {
        returned += error.code() == Code::closed;
    };
    auto jobs = RawPusher::open(node, "/nobody", options);
    auto worker = RawPuller::open(node, "/empty");
    jobs.push(bytes_of("1"));
    auto run = [](auto&& wait) { return std::async(std::launch::async, [=] { return code_of(wait); }); };
    std::future<Code> waits[] = {
        run([&] { jobs.push_for(bytes_of("2"), 1h); }),
        run([&] { jobs.wait_until_done(); }),
        run([&] { worker.recv(); }),
    };
    std::this_thread::sleep_for(20ms);  // sleep: lets the threads begin to wait
    node.close();
    CHECK(returned == 1);
    for (auto& wait : waits) {
        CHECK(wait.wait_for(LIMIT) == std::future_status::ready && wait.get() == Code::closed);
    }
    CHECK(code_of([&] { jobs.push(bytes_of("3")); }) == Code::closed);
    CHECK(code_of([&] { worker.try_recv(); }) == Code::closed);
}

TEST("a job outlives its worker and its node") {
    auto node = std::make_unique<TestNode>("queue");
    auto jobs = std::make_unique<RawPusher>(RawPusher::open(*node, "/jobs"));
    auto worker = std::make_unique<RawPuller>(RawPuller::open(*node, "/jobs"));
    jobs->push(bytes_of("sweep"));
    auto job = worker->recv_for(LIMIT);
    worker.reset();
    CHECK(text_of(*job) == "sweep");
    node->close();
    CHECK(rnet_job_data(job.handle()).len == 0);
    CHECK(code_of([&] { job.ack(); }) == Code::closed);
    node.reset();
    jobs.reset();
}

TEST("null handles and wrong option structs are errors") {
    TestNode node("null");
    rnet_goal* goal = nullptr;
    rnet_sample* sample = nullptr;
    rnet_job* job = nullptr;
    rnet_action_client* client = nullptr;
    rnet_pusher* pusher = nullptr;
    rnet_puller* puller = nullptr;
    int freed = 0;
    auto free = [](void* context) { ++*static_cast<int*>(context); };
    CHECK(rnet_action_client_send(nullptr, nullptr, 0, nullptr, &goal, nullptr) == RNET_INVALID_ARGUMENT);
    CHECK(rnet_goal_result(nullptr, 0, &sample, nullptr) == RNET_INVALID_ARGUMENT);
    CHECK(rnet_goal_feedback(nullptr, 0, &sample, nullptr) == RNET_INVALID_ARGUMENT);
    CHECK(rnet_goal_cancel(nullptr, nullptr) == RNET_INVALID_ARGUMENT);
    CHECK(rnet_pusher_push(nullptr, nullptr, 0, 0, nullptr) == RNET_INVALID_ARGUMENT);
    CHECK(rnet_pusher_wait_until_done(nullptr, 0, nullptr) == RNET_INVALID_ARGUMENT);
    CHECK(rnet_puller_recv(nullptr, 0, &job, nullptr) == RNET_INVALID_ARGUMENT);
    CHECK(rnet_job_ack(nullptr, nullptr) == RNET_INVALID_ARGUMENT);
    CHECK(rnet_job_fail(nullptr, nullptr, nullptr, nullptr) == RNET_INVALID_ARGUMENT);
    rnet_action_options action{};
    CHECK(rnet_action_client_new(node.handle(), "/x", &action, &client, nullptr) == RNET_INVALID_ARGUMENT);
    action.struct_size = sizeof action;
    action.policy = 9;
    rnet_service* service = nullptr;
    auto handler = [](rnet_request*, void*) {};
    CHECK(rnet_action_new(node.handle(), "/x", &action, handler, &freed, free, &service, nullptr) ==
          RNET_INVALID_ARGUMENT);
    rnet_pusher_options push{};
    push.struct_size = 5000;
    CHECK(rnet_pusher_new(node.handle(), "/x", &push, nullptr, &freed, free, &pusher, nullptr) ==
          RNET_INVALID_ARGUMENT);
    rnet_puller_options pull{};
    pull.struct_size = 1;
    CHECK(rnet_puller_new(node.handle(), "/x", &pull, &puller, nullptr) == RNET_INVALID_ARGUMENT);
    CHECK(rnet_pull_on(node.handle(), "/x", &pull, handler, &freed, free, &service, nullptr) ==
          RNET_INVALID_ARGUMENT);
    CHECK(rnet_pull_on(node.handle(), "/x", nullptr, nullptr, &freed, free, &service, nullptr) ==
          RNET_INVALID_ARGUMENT);
    CHECK(freed == 4);
    rnet_goal_free(nullptr);
    rnet_action_client_close(nullptr);
    rnet_action_client_free(nullptr);
    rnet_pusher_close(nullptr);
    rnet_pusher_free(nullptr);
    rnet_puller_close(nullptr);
    rnet_puller_free(nullptr);
    rnet_job_free(nullptr);
    CHECK(rnet_job_data(nullptr).len == 0 && rnet_job_is_cancelled(nullptr) &&
          !rnet_job_redelivered(nullptr));
}

TEST("in a forked child the objects of the parent are closed") {
    TestNode node("parent");
    auto jobs = RawPusher::open(node, "/jobs");
    auto worker = RawPuller::open(node, "/jobs");
    jobs.push(bytes_of("sweep"));
    auto job = worker.recv_for(LIMIT);
    pid_t child = fork();
    if (child == 0) {
        bool closed = code_of([&] { jobs.push(bytes_of("x")); }) == Code::closed;
        closed &= code_of([&] { worker.recv(); }) == Code::closed;
        closed &= code_of([&] { job.ack(); }) == Code::closed;
        jobs.close();
        worker.close();
        _exit(closed ? 0 : 1);
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    job.ack();
    jobs.wait_until_done_for(LIMIT);
}

RNET_TEST_MAIN()
