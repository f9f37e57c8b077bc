// Services: a client sends a request, and a server answers.
//
//     auto service = rnet::serve<Number, Number>(node, "/root", [](const Number& n) {
//         return Number{std::sqrt(n.x)};
//     });
//     auto client = rnet::Client<Number, Number>::open(node, "/root");
//     double root = client.call(Number{16})->x;
//
// A handler may take a CallContext& as its second argument. Its exception becomes Code::call_failed at the
// caller.
#pragma once

#include <rnet/detail/call.hpp>

namespace rnet {

/// Options of serve() and serve_stream().
struct ServiceOptions {
    /// How many calls the handler may run at a time, each on its own thread: 1 to 256.
    std::uint32_t at_once = 1;
    /// How many calls may wait, up to 65,536. Further calls are refused.
    std::uint32_t backlog = 64;
};

/// The server of a service, of an action, or of a work queue with a handler. The end of its life closes it.
class Service {
public:
    explicit Service(rnet_service* service) noexcept : handle_(service) {}

    /// Its name, with the leading slash.
    std::string_view name() const noexcept { return rnet_service_name(handle()); }
    /// Its counters.
    rnet_service_stats stats() const { return stats(std::nothrow).value(); }
    Result<rnet_service_stats> stats(std::nothrow_t) const {
        auto stats = detail::initialised<rnet_service_stats>();
        rnet_error* error = nullptr;
        auto code = rnet_service_get_stats(handle(), &stats, &error);
        if (code != RNET_OK) return Error(static_cast<Code>(code), error);
        return stats;
    }
    /// Cancels its calls, and waits for running handlers, except for one that calls this.
    void close() noexcept { rnet_service_close(handle()); }
    rnet_service* handle() const noexcept { return handle_.get(); }

private:
    detail::Handle<rnet_service, rnet_service_free> handle_;
};

/// Sends the replies of a stream, for its handler while it runs.
template <class R>
class Responder : public CallContext {
public:
    using CallContext::CallContext;

    /// Sends a reply. Code::cancelled: the caller wants no more; the handler should return.
    template <class M = R>
    void send(const M& reply) {
        send(reply, std::nothrow).value();
    }
    template <class M = R>
    Result<void> send(const M& reply, std::nothrow_t) {
        Bytes bytes = detail::encoded<R>(reply, buffer_);
        rnet_error* error = nullptr;
        auto code = rnet_request_send(handle(), bytes.data(), bytes.size(), &error);
        return detail::check(code, error);
    }

private:
    std::vector<std::uint8_t> buffer_;
};

namespace detail {

template <class Q, class R, class F>
Result<Service> open_service(rnet_node* node, std::string_view name, F handler, const ServiceOptions& options,
                             rnet_request_function run) {
    auto request = type_of<Q>();
    if (!request) return request.error();
    auto reply = type_of<R>();
    if (!reply) return reply.error();
    auto given = initialised<rnet_service_options>();
    given.request_type = request->handle();
    given.reply_type = reply->handle();
    given.at_once = options.at_once;
    given.backlog = options.backlog;
    given.no_backlog = options.backlog == 0;
    rnet_service* made = nullptr;
    rnet_error* error = nullptr;
    auto code = rnet_service_new(node, std::string(name).c_str(), &given, run, context_of(std::move(handler)),
                                 free_context<F>, &made, &error);
    return owned<Service>(code, made, error);
}

}  // namespace detail

/// Serves a service: `handler` is R(const Q&) or R(const Q&, CallContext&), and is called on threads of the
/// service.
template <class Q, class R, class N, class F>
Result<Service> serve(const N& node, std::string_view name, F handler, const ServiceOptions& options,
                      std::nothrow_t) {
    auto run = [](rnet_request* request, void* context) {
        detail::with_request<Q>(request, [&](const Q& message) {
            CallContext state(request);
            detail::answer<R>(request, [&]() -> decltype(auto) {
                return detail::call_handler(*static_cast<F*>(context), message, state);
            });
        });
    };
    return detail::open_service<Q, R, F>(node.handle(), name, std::move(handler), options, run);
}
template <class Q, class R, class N, class F>
Service serve(const N& node, std::string_view name, F handler, const ServiceOptions& options = {}) {
    return serve<Q, R>(node, name, std::move(handler), options, std::nothrow).value();
}

/// Serves a stream of replies: `handler` is void(const Q&, Responder<R>&).
template <class Q, class R, class N, class F>
Result<Service> serve_stream(const N& node, std::string_view name, F handler, const ServiceOptions& options,
                             std::nothrow_t) {
    auto run = [](rnet_request* request, void* context) {
        detail::with_request<Q>(request, [&](const Q& message) {
            Responder<R> responder(request);
            (*static_cast<F*>(context))(message, responder);
            rnet_request_end(request, nullptr);
        });
    };
    return detail::open_service<Q, R, F>(node.handle(), name, std::move(handler), options, run);
}
template <class Q, class R, class N, class F>
Service serve_stream(const N& node, std::string_view name, F handler, const ServiceOptions& options = {}) {
    return serve_stream<Q, R>(node, name, std::move(handler), options, std::nothrow).value();
}

/// Options of a client.
struct ClientOptions {
    /// Time limit of each call that sets none, including the wait for a server; default 10 s.
    std::optional<std::chrono::nanoseconds> timeout;
};

/// Options of a call or a goal.
struct CallOptions {
    /// Time limit, from now until the last reply; default: that of the client, for a goal none.
    std::optional<std::chrono::nanoseconds> timeout;
    /// Calls with the same key go to the same server.
    std::string key;
};

namespace detail {

inline rnet_call_options call_options(const CallOptions& options) {
    auto given = initialised<rnet_call_options>();
    given.timeout_ns = option_ns(options.timeout);
    given.key = options.key.empty() ? nullptr : options.key.c_str();
    return given;
}

/// The options of a client; the types live as long as the struct is used.
template <class Q, class R>
Result<rnet_client_options> client_options(const ClientOptions& options, Type& request, Type& reply) {
    auto first = type_of<Q>();
    if (!first) return first.error();
    auto second = type_of<R>();
    if (!second) return second.error();
    request = *std::move(first);
    reply = *std::move(second);
    auto given = initialised<rnet_client_options>();
    given.request_type = request.handle();
    given.reply_type = reply.handle();
    given.timeout_ns = option_ns(options.timeout);
    return given;
}

}  // namespace detail

/// A call in progress. Any thread may use it. The end of its life cancels it.
template <class R>
class Pending {
public:
    explicit Pending(rnet_pending* pending) noexcept : handle_(pending) {}

    /// Waits for the only reply of a call.
    Received<R> wait() { return wait(std::nothrow).value(); }
    Result<Received<R>> wait(std::nothrow_t) { return wait_ns(RNET_FOREVER); }
    /// As wait(), for a time: after Code::timeout the call continues, unless its own time limit is over.
    Received<R> wait_for(std::chrono::nanoseconds limit) { return wait_for(limit, std::nothrow).value(); }
    Result<Received<R>> wait_for(std::chrono::nanoseconds limit, std::nothrow_t) {
        return wait_ns(limit.count());
    }

    /// Waits for the next reply of a stream; none after the last.
    std::optional<Received<R>> next() { return next(std::nothrow).value(); }
    Result<std::optional<Received<R>>> next(std::nothrow_t) { return next_ns(RNET_FOREVER); }
    /// As next(), for a time: after Code::timeout the call continues, unless its own time limit is over.
    std::optional<Received<R>> next_for(std::chrono::nanoseconds limit) {
        return next_for(limit, std::nothrow).value();
    }
    Result<std::optional<Received<R>>> next_for(std::chrono::nanoseconds limit, std::nothrow_t) {
        return next_ns(limit.count());
    }

    /// Cancels it: waits for it end with Code::cancelled.
    void cancel() noexcept { rnet_pending_cancel(handle()); }
    rnet_pending* handle() const noexcept { return handle_.get(); }

private:
    Result<Received<R>> wait_ns(std::int64_t limit) {
        rnet_sample* sample = nullptr;
        rnet_error* error = nullptr;
        auto code = rnet_pending_wait(handle(), limit, &sample, &error);
        return detail::received<R>(code, sample, error);
    }
    Result<std::optional<Received<R>>> next_ns(std::int64_t limit) {
        rnet_sample* sample = nullptr;
        rnet_error* error = nullptr;
        auto code = rnet_pending_next(handle(), limit, &sample, &error);
        return detail::received_or_end<R>(code, sample, error);
    }

    detail::Handle<rnet_pending, rnet_pending_free> handle_;
};

/// Calls one service. Any thread may use it, with any number of calls at a time.
template <class Q, class R>
class Client {
public:
    /// Opens a client; its servers may start later.
    template <class N>
    static Result<Client> open(const N& node, std::string_view name, const ClientOptions& options,
                               std::nothrow_t) {
        Type request, reply;
        auto given = detail::client_options<Q, R>(options, request, reply);
        if (!given) return given.error();
        rnet_client* made = nullptr;
        rnet_error* error = nullptr;
        auto code = rnet_client_new(node.handle(), std::string(name).c_str(), &*given, &made, &error);
        return detail::owned<Client>(code, made, error);
    }
    template <class N>
    static Client open(const N& node, std::string_view name, const ClientOptions& options = {}) {
        return open(node, name, options, std::nothrow).value();
    }
    explicit Client(rnet_client* client) noexcept : handle_(client) {}

    /// Calls, and waits for the reply.
    Received<R> call(const Q& request, const CallOptions& options = {}) const {
        return call(request, options, std::nothrow).value();
    }
    Result<Received<R>> call(const Q& request, std::nothrow_t) const {
        return call(request, {}, std::nothrow);
    }
    Result<Received<R>> call(const Q& request, const CallOptions& options, std::nothrow_t) const {
        std::vector<std::uint8_t> buffer;
        Bytes bytes = detail::encoded<Q>(request, buffer);
        auto given = detail::call_options(options);
        rnet_sample* sample = nullptr;
        rnet_error* error = nullptr;
        auto code = rnet_client_call(handle(), bytes.data(), bytes.size(), &given, &sample, &error);
        return detail::received<R>(code, sample, error);
    }

    /// Starts a call with one reply, without waiting.
    Pending<R> start(const Q& request, const CallOptions& options = {}) const {
        return start(request, options, std::nothrow).value();
    }
    Result<Pending<R>> start(const Q& request, const CallOptions& options, std::nothrow_t) const {
        return begin(rnet_client_start, request, options);
    }
    /// Starts a call that receives all replies of a stream.
    Pending<R> stream(const Q& request, const CallOptions& options = {}) const {
        return stream(request, options, std::nothrow).value();
    }
    Result<Pending<R>> stream(const Q& request, const CallOptions& options, std::nothrow_t) const {
        return begin(rnet_client_stream, request, options);
    }

    /// The name of the service, with its leading slash.
    std::string_view name() const noexcept { return rnet_client_name(handle()); }
    /// Number of servers that would accept a call now.
    std::size_t server_count() const { return server_count(std::nothrow).value(); }
    Result<std::size_t> server_count(std::nothrow_t) const {
        std::size_t count = 0;
        rnet_error* error = nullptr;
        auto code = rnet_client_server_count(handle(), &count, &error);
        if (code != RNET_OK) return Error(static_cast<Code>(code), error);
        return count;
    }
    /// Its counters.
    rnet_client_stats stats() const { return stats(std::nothrow).value(); }
    Result<rnet_client_stats> stats(std::nothrow_t) const {
        auto stats = detail::initialised<rnet_client_stats>();
        rnet_error* error = nullptr;
        auto code = rnet_client_get_stats(handle(), &stats, &error);
        if (code != RNET_OK) return Error(static_cast<Code>(code), error);
        return stats;
    }
    /// Closes it: its open calls end with Code::closed, also those that other threads wait for.
    void close() noexcept { rnet_client_close(handle()); }
    rnet_client* handle() const noexcept { return handle_.get(); }

private:
    Result<Pending<R>> begin(decltype(rnet_client_start) begin_call, const Q& request,
                             const CallOptions& options) const {
        std::vector<std::uint8_t> buffer;
        Bytes bytes = detail::encoded<Q>(request, buffer);
        auto given = detail::call_options(options);
        rnet_pending* made = nullptr;
        rnet_error* error = nullptr;
        auto code = begin_call(handle(), bytes.data(), bytes.size(), &given, &made, &error);
        return detail::owned<Pending<R>>(code, made, error);
    }

    detail::Handle<rnet_client, rnet_client_free> handle_;
};

/// Calls a service once, with a client that the node keeps for the next call of these types.
template <class Q, class R, class N>
Result<Received<R>> call(const N& node, std::string_view name, const Q& request, const ClientOptions& options,
                         std::nothrow_t) {
    Type request_type, reply_type;
    auto given = detail::client_options<Q, R>(options, request_type, reply_type);
    if (!given) return given.error();
    std::vector<std::uint8_t> buffer;
    Bytes bytes = detail::encoded<Q>(request, buffer);
    rnet_sample* sample = nullptr;
    rnet_error* error = nullptr;
    auto code = rnet_node_call(node.handle(), std::string(name).c_str(), bytes.data(), bytes.size(), &*given,
                               &sample, &error);
    return detail::received<R>(code, sample, error);
}
template <class Q, class R, class N>
Received<R> call(const N& node, std::string_view name, const Q& request, const ClientOptions& options = {}) {
    return call<Q, R>(node, name, request, options, std::nothrow).value();
}

}  // namespace rnet
