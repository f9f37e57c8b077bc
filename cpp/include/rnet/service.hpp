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
    std::string_view name() const& noexcept { return rnet_service_name(handle()); }
    std::string name() && { return std::string(name()); }
    /// Its counters.
    rnet_service_stats stats() const { return stats(std::nothrow).value(); }
    Result<rnet_service_stats> stats(std::nothrow_t) const {
        return detail::filled_by<rnet_service_stats>(rnet_service_get_stats, handle());
    }
    /// Cancels its calls, and waits for running handlers, except for one that calls this.
    void close() noexcept {
        rnet_service_close(handle());
        detail::from_library();
    }
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
        return detail::send_to_caller<R>(handle(), reply, buffer_);
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
    return made_by<Service>(rnet_service_new, node, CText(name), &given, run, context_of(std::move(handler)),
                            free_context<F>);
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

/// The number of servers in the counters of a client.
inline Result<std::size_t> server_count(const Result<rnet_client_stats>& stats) {
    if (!stats) return stats.error();
    return static_cast<std::size_t>(stats->servers);
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
    Received<R> wait_for(detail::TimeLimit limit) { return wait_for(limit, std::nothrow).value(); }
    Result<Received<R>> wait_for(detail::TimeLimit limit, std::nothrow_t) {
        return wait_ns(limit.ns());
    }

    /// Waits for the next reply of a stream; none after the last.
    std::optional<Received<R>> next() { return next(std::nothrow).value(); }
    Result<std::optional<Received<R>>> next(std::nothrow_t) { return next_ns(RNET_FOREVER); }
    /// As next(), for a time: after Code::timeout the call continues, unless its own time limit is over.
    std::optional<Received<R>> next_for(detail::TimeLimit limit) {
        return next_for(limit, std::nothrow).value();
    }
    Result<std::optional<Received<R>>> next_for(detail::TimeLimit limit, std::nothrow_t) {
        return next_ns(limit.ns());
    }

    /// Cancels it: waits for it end with Code::cancelled.
    void cancel() noexcept { rnet_pending_cancel(handle()); }
    rnet_pending* handle() const noexcept { return handle_.get(); }

private:
    Result<Received<R>> wait_ns(std::int64_t limit) {
        auto reply = next_ns(limit);
        if (!reply) return reply.error();
        if (!*reply) return Error(Code::closed, "the reply of this call was taken");
        return **std::move(reply);
    }
    Result<std::optional<Received<R>>> next_ns(std::int64_t limit) {
        return detail::received_or_end<R>(rnet_pending_next, handle(), limit);
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
        return detail::made_by<Client>(rnet_client_new, node.handle(), detail::CText(name), &*given);
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
        const detail::Encoded<Q> bytes(request);
        auto given = detail::call_options(options);
        return detail::received_by<R>(rnet_client_call, handle(), bytes.data(), bytes.size(), &given);
    }

    /// Starts a call with one reply, without waiting.
    Pending<R> start(const Q& request, const CallOptions& options = {}) const {
        return start(request, options, std::nothrow).value();
    }
    Result<Pending<R>> start(const Q& request, const CallOptions& options, std::nothrow_t) const {
        return begin(request, options, false);
    }
    /// Starts a call that receives all replies of a stream.
    Pending<R> stream(const Q& request, const CallOptions& options = {}) const {
        return stream(request, options, std::nothrow).value();
    }
    Result<Pending<R>> stream(const Q& request, const CallOptions& options, std::nothrow_t) const {
        return begin(request, options, true);
    }

    /// The name of the service, with its leading slash.
    std::string_view name() const& noexcept { return rnet_client_name(handle()); }
    std::string name() && { return std::string(name()); }
    /// Number of servers that would accept a call now.
    std::size_t server_count() const { return server_count(std::nothrow).value(); }
    Result<std::size_t> server_count(std::nothrow_t) const {
        return detail::server_count(stats(std::nothrow));
    }
    /// Its counters.
    rnet_client_stats stats() const { return stats(std::nothrow).value(); }
    Result<rnet_client_stats> stats(std::nothrow_t) const {
        return detail::filled_by<rnet_client_stats>(rnet_client_get_stats, handle());
    }
    /// Closes it: its open calls end with Code::closed, also those that other threads wait for.
    void close() noexcept { rnet_client_close(handle()); }
    rnet_client* handle() const noexcept { return handle_.get(); }

private:
    Result<Pending<R>> begin(const Q& request, const CallOptions& options, bool stream) const {
        const detail::Encoded<Q> bytes(request);
        auto given = detail::call_options(options);
        given.stream = stream;
        return detail::made_by<Pending<R>>(rnet_client_start, handle(), bytes.data(), bytes.size(), &given);
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
    const detail::Encoded<Q> bytes(request);
    return detail::received_by<R>(rnet_node_call, node.handle(), detail::CText(name), bytes.data(),
                                  bytes.size(), &*given);
}
template <class Q, class R, class N>
Received<R> call(const N& node, std::string_view name, const Q& request, const ClientOptions& options = {}) {
    return call<Q, R>(node, name, request, options, std::nothrow).value();
}

}  // namespace rnet
