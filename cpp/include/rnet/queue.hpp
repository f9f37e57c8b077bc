// Work queues: each job goes to one free worker.
//
//     auto worker = rnet::Puller<rnet::Bytes>::open(node, "/jobs");
//     auto jobs = rnet::Pusher<rnet::Bytes>::open(node, "/jobs");
//     jobs.push(rnet::bytes_of("sweep the hall"));
//     auto job = worker.recv();
//     sweep(*job);
//     job.ack();
#pragma once

#include <rnet/detail/receiver.hpp>
#include <rnet/service.hpp>

#include <functional>

namespace rnet {

/// Options of a pusher.
template <class J>
struct PusherOptions {
    /// Maximum number of unfinished jobs, 1 to 65,536.
    std::uint32_t backlog = 1024;
    /// How long a push waits while the backlog is full; by default it fails at once.
    std::optional<std::chrono::nanoseconds> wait_for_capacity;
    /// How long a worker may take for a job: after that it counts as lost. By default without a limit.
    std::optional<std::chrono::nanoseconds> ack_within;
    /// Gets each job that no worker acknowledged, and the reason, on the thread of the pusher. Without it,
    /// the node logs the reason.
    std::function<void(const J&, const Error&)> on_undelivered;
};

/// The sending end of a work queue. Any thread may use it. The end of its life returns unfinished jobs.
template <class J>
class Pusher {
public:
    /// Opens a pusher; its workers may start later.
    template <class N>
    static Result<Pusher> open(const N& node, std::string_view name, const PusherOptions<J>& options,
                               std::nothrow_t) {
        using Function = std::function<void(const J&, const Error&)>;
        auto on_undelivered = [](rnet_bytes bytes, const rnet_error* error, void* context) {
            detail::guarded([&] {
                detail::Decoded<J> job;
                job.read(detail::view_of(bytes)).value();
                (*static_cast<Function*>(context))(job.get(), Error::copy_of(error));
            });
        };
        auto type = detail::type_of<J>();
        if (!type) return type.error();
        auto given = detail::initialised<rnet_pusher_options>();
        given.message_type = type->handle();
        given.backlog = options.backlog;
        given.wait_for_capacity_ns = detail::option_ns(options.wait_for_capacity);
        given.ack_within_ns = detail::option_ns(options.ack_within);
        rnet_undelivered_function function = nullptr;
        if (options.on_undelivered) function = on_undelivered;
        return detail::made_by<Pusher>(rnet_pusher_new, node.handle(), detail::CText(name), &given, function,
                                       detail::context_of(Function(options.on_undelivered)),
                                       detail::free_context<Function>);
    }
    template <class N>
    static Pusher open(const N& node, std::string_view name, const PusherOptions<J>& options = {}) {
        return open(node, name, options, std::nothrow).value();
    }
    explicit Pusher(rnet_pusher* pusher) noexcept : handle_(pusher) {}

    /// Adds a job. Code::limit_reached: the backlog is full, and the job was not accepted.
    void push(const J& job) const { push(job, std::nothrow).value(); }
    Result<void> push(const J& job, std::nothrow_t) const { return push_ns(job, 0); }
    /// As push(), and waits for at most this time while the backlog is full.
    void push_for(const J& job, detail::TimeLimit limit) const {
        push_for(job, limit, std::nothrow).value();
    }
    Result<void> push_for(const J& job, detail::TimeLimit limit, std::nothrow_t) const {
        return push_ns(job, limit.wait_ns());
    }

    /// Waits until every job has been acknowledged or returned.
    void wait_until_done() const { wait_until_done(std::nothrow).value(); }
    Result<void> wait_until_done(std::nothrow_t) const { return wait_ns(RNET_FOREVER); }
    /// As wait_until_done(), for a time; then Code::timeout.
    void wait_until_done_for(detail::TimeLimit limit) const {
        wait_until_done_for(limit, std::nothrow).value();
    }
    Result<void> wait_until_done_for(detail::TimeLimit limit, std::nothrow_t) const {
        return wait_ns(limit.ns());
    }

    /// The name of the queue, with its leading slash.
    std::string_view name() const& noexcept { return rnet_pusher_name(handle()); }
    std::string name() && { return std::string(name()); }
    /// Number of workers now, free or busy.
    std::size_t worker_count() const { return worker_count(std::nothrow).value(); }
    Result<std::size_t> worker_count(std::nothrow_t) const {
        auto counters = stats(std::nothrow);
        if (!counters) return counters.error();
        return static_cast<std::size_t>(counters->workers);
    }
    /// Its counters.
    rnet_push_stats stats() const { return stats(std::nothrow).value(); }
    Result<rnet_push_stats> stats(std::nothrow_t) const {
        return detail::filled_by<rnet_push_stats>(rnet_pusher_get_stats, handle());
    }
    /// Closes it: unfinished jobs are returned as undelivered before this returns.
    void close() noexcept {
        rnet_pusher_close(handle());
        detail::from_library();
    }
    rnet_pusher* handle() const noexcept { return handle_.get(); }

private:
    Result<void> wait_ns(std::int64_t limit) const {
        return detail::success_of(rnet_pusher_wait_until_done, handle(), limit);
    }
    Result<void> push_ns(const J& job, std::int64_t limit) const {
        const detail::Encoded<J> bytes(job);
        return detail::success_of(rnet_pusher_push, handle(), bytes.data(), bytes.size(), limit);
    }

    detail::Handle<rnet_pusher, rnet_pusher_free> handle_;
};

/// A job that a worker has received. One thread at a time may use it. The end of its life without ack() fails
/// it.
template <class J>
class Job {
public:
    /// The job; for raw bytes valid until ack() or fail().
    const J& operator*() const& { return message_.get(); }
    const J& operator*() && = delete;  // It would end with the job: keep that in a variable.
    const J* operator->() const { return &message_.get(); }
    /// The node that pushed it.
    std::string_view pusher() const& noexcept { return rnet_job_pusher(handle()); }
    std::string pusher() && { return std::string(pusher()); }
    /// Whether another worker had it and was lost, or did not acknowledge it in time: it may be done.
    bool redelivered() const noexcept { return rnet_job_redelivered(handle()); }
    /// Whether the job was cancelled.
    bool is_cancelled() const noexcept { return rnet_job_is_cancelled(handle()); }

    /// Acknowledges it as done.
    void ack() { ack(std::nothrow).value(); }
    Result<void> ack(std::nothrow_t) { return detail::success_of(rnet_job_ack, handle()); }
    /// Fails it: its pusher gets the text and the kind, and it does not go to another worker.
    void fail(const std::string& text, const std::string& kind = "failed") {
        fail(text, kind, std::nothrow).value();
    }
    Result<void> fail(const std::string& text, const std::string& kind, std::nothrow_t) {
        return detail::success_of(rnet_job_fail, handle(), kind.c_str(), text.c_str());
    }
    rnet_job* handle() const noexcept { return handle_.get(); }

private:
    template <class>
    friend class Puller;
    explicit Job(rnet_job* job) noexcept : handle_(job) {}

    detail::Handle<rnet_job, rnet_job_free> handle_;
    detail::Decoded<J> message_;
};

/// A worker of a work queue, which has one job at a time: it receives the next one once the previous one was
/// acknowledged or failed. Any thread may use it. The end of its life closes
/// it: an unfinished job goes to another worker.
template <class J>
class Puller : public detail::Receiver<Puller<J>, Job<J>> {
public:
    template <class N>
    static Result<Puller> open(const N& node, std::string_view name, std::nothrow_t) {
        auto type = detail::type_of<J>();
        if (!type) return type.error();
        auto given = detail::initialised<rnet_puller_options>();
        given.message_type = type->handle();
        return detail::made_by<Puller>(rnet_puller_new, node.handle(), detail::CText(name), &given);
    }
    template <class N>
    static Puller open(const N& node, std::string_view name) {
        return open(node, name, std::nothrow).value();
    }
    explicit Puller(rnet_puller* puller) noexcept : handle_(puller) {}

    /// The name of the queue, with its leading slash.
    std::string_view name() const& noexcept { return rnet_puller_name(handle()); }
    std::string name() && { return std::string(name()); }
    /// Its counters: calls are jobs.
    rnet_service_stats stats() const { return stats(std::nothrow).value(); }
    Result<rnet_service_stats> stats(std::nothrow_t) const {
        return detail::filled_by<rnet_service_stats>(rnet_puller_get_stats, handle());
    }
    /// Closes it: its current job goes to another worker, and waits of other threads end.
    void close() noexcept { rnet_puller_close(handle()); }
    rnet_puller* handle() const noexcept { return handle_.get(); }

private:
    friend class detail::Receiver<Puller<J>, Job<J>>;
    /// The next job, which comes once the previous one was acknowledged or failed. A job that cannot be
    /// decoded fails and is skipped.
    Result<std::optional<Job<J>>> take(std::int64_t limit) const {
        for (;;) {
            auto made = detail::result_of<rnet_job*>(rnet_puller_recv, handle(), limit);
            if (!made) return made.error();
            if (!*made) return std::optional<Job<J>>();
            Job<J> job(*made);
            auto read = job.message_.read(detail::view_of(rnet_job_data(job.handle())));
            if (read) return std::optional<Job<J>>(std::move(job));
            (void)job.fail(read.error().what(), "malformed", std::nothrow);
        }
    }
    detail::Handle<rnet_puller, rnet_puller_free> handle_;
};

/// Opens a worker whose jobs go to `handler`, void(const J&) or void(const J&, CallContext&), one at a time.
/// A job whose handler returns is acknowledged; an exception fails it.
template <class J, class N, class F>
Result<Service> pull(const N& node, std::string_view name, F handler, std::nothrow_t) {
    auto run = [](rnet_request* request, void* context) {
        detail::with_request<J>(request, [&](const J& job) {
            CallContext state(request);
            detail::call_handler(*static_cast<F*>(context), job, state);
        });
    };
    auto type = detail::type_of<J>();
    if (!type) return type.error();
    auto given = detail::initialised<rnet_puller_options>();
    given.message_type = type->handle();
    return detail::made_by<Service>(rnet_pull_on, node.handle(), detail::CText(name), &given, run,
                                    detail::context_of(std::move(handler)), detail::free_context<F>);
}
template <class J, class N, class F>
Service pull(const N& node, std::string_view name, F handler) {
    return pull<J>(node, name, std::move(handler), std::nothrow).value();
}

}  // namespace rnet
