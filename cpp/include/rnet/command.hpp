// Commands: a receiver obeys one driver at a time, and falls back to a safe action when that driver goes
// silent.
//
//     auto base = rnet::Command::receive<Twist>(node, "/cmd_vel", [](const Twist& twist) { drive(twist); },
//                                               rnet::Fallback<Twist>::message(Twist{}));
//     auto driver = rnet::Driver<Twist>::take(node, "/cmd_vel");
//     driver.send(twist);
#pragma once

#include <rnet/detail/call.hpp>

#include <functional>

namespace rnet {

/// Why a receiver has fallen back, or why the last driver lost authority.
enum class FallbackReason : int {
    none = RNET_REASON_NONE,
    opened = RNET_REASON_OPENED,
    granted = RNET_REASON_GRANTED,
    deadline = RNET_REASON_DEADLINE,
    expired = RNET_REASON_EXPIRED,
    released = RNET_REASON_RELEASED,
    driver_lost = RNET_REASON_DRIVER_LOST,
    preempted = RNET_REASON_PREEMPTED,
    overrun = RNET_REASON_OVERRUN,
    panicked = RNET_REASON_PANICKED,
    closed = RNET_REASON_CLOSED,
    unknown = RNET_REASON_UNKNOWN,
};

/// What a receiver does when no command is in force. It must be safe for the robot; it has no default.
template <class T>
class Fallback {
public:
    /// Applies this message.
    static Fallback message(const T& message) {
        std::vector<std::uint8_t> buffer;
        Bytes bytes = detail::encoded<T>(message, buffer);
        Fallback fallback(RNET_FALLBACK_MESSAGE);
        fallback.message_.assign(bytes.begin(), bytes.end());
        return fallback;
    }
    /// Applies the default message of the type: zero for velocities and torques.
    static Fallback zero() { return Fallback(RNET_FALLBACK_ZERO); }
    /// Applies the last command again, for positions; nothing before the first.
    static Fallback hold() { return Fallback(RNET_FALLBACK_HOLD); }
    /// Calls this, on the thread that applies commands.
    static Fallback handler(std::function<void(FallbackReason)> handler) {
        Fallback fallback(RNET_FALLBACK_HANDLER);
        fallback.handler_ = std::move(handler);
        return fallback;
    }

private:
    friend class Command;
    explicit Fallback(rnet_fallback kind) : kind_(kind) {}

    rnet_fallback kind_;
    std::vector<std::uint8_t> message_;
    std::function<void(FallbackReason)> handler_;
};

/// Options of a receiver.
struct CommandOptions {
    /// Longest time between two commands, 1 ms to 1 h.
    std::chrono::nanoseconds deadline = std::chrono::milliseconds(100);
};

/// The state of a receiver at one moment.
struct CommandStatus {
    /// The node of the driver with authority; empty without one.
    std::string driver;
    /// The priority of that driver, and the number of its authority.
    std::int32_t priority = 0;
    std::uint64_t number = 0;
    /// Whether commands are applied; false after a fallback.
    bool in_force = false;
    FallbackReason reason = FallbackReason::none;
    /// Whether the last fallback failed: the robot may not be safe.
    bool fallback_failed = false;
};

/// The receiving end of a command. The end of its life falls back for the last time, and closes it.
class Command {
public:
    /// Falls back, and then calls `apply`, void(const T&), with each command of the driver with authority, on
    /// a thread of its own. It should return well within the deadline; if it takes longer or throws, the
    /// fallback follows.
    template <class T, class N, class F>
    static Result<Command> receive(const N& node, std::string_view topic, F apply,
                                   const Fallback<T>& fallback, const CommandOptions& options,
                                   std::nothrow_t) {
        using Context = Functions<T, F>;
        auto on_command = [](rnet_bytes command, void* context) {
            return applied([&] {
                detail::Decoded<T> message;
                message.read(detail::view_of(command)).value();
                static_cast<Context*>(context)->apply(message.get());
            });
        };
        auto on_fallback = [](rnet_fallback_reason reason, void* context) {
            auto why = static_cast<FallbackReason>(reason);
            return applied([&] { static_cast<Context*>(context)->fall_back(why); });
        };
        return open<T>(node.handle(), topic, nullptr, on_command, on_fallback,
                       detail::context_of(Context{std::move(apply), fallback.handler_}),
                       detail::free_context<Context>, fallback, options);
    }
    template <class T, class N, class F>
    static Command receive(const N& node, std::string_view topic, F apply, const Fallback<T>& fallback,
                           const CommandOptions& options = {}) {
        return receive<T>(node, topic, std::move(apply), fallback, options, std::nothrow).value();
    }

    /// Publishes each valid command, and the fallback message, on a plain topic.
    template <class T, class N>
    static Result<Command> forward(const N& node, std::string_view topic, std::string_view to,
                                   const Fallback<T>& fallback, const CommandOptions& options,
                                   std::nothrow_t) {
        using Handler = std::function<void(FallbackReason)>;
        auto on_fallback = [](rnet_fallback_reason reason, void* context) {
            return applied([&] { (*static_cast<Handler*>(context))(static_cast<FallbackReason>(reason)); });
        };
        return open<T>(node.handle(), topic, std::string(to).c_str(), nullptr, on_fallback,
                       detail::context_of(Handler(fallback.handler_)), detail::free_context<Handler>,
                       fallback, options);
    }
    template <class T, class N>
    static Command forward(const N& node, std::string_view topic, std::string_view to,
                           const Fallback<T>& fallback, const CommandOptions& options = {}) {
        return forward<T>(node, topic, to, fallback, options, std::nothrow).value();
    }
    explicit Command(rnet_command* command) noexcept : handle_(command) {}

    /// The topic.
    std::string_view topic() const& noexcept { return rnet_command_topic(handle()); }
    std::string topic() && { return std::string(topic()); }
    /// The present driver, and whether the receiver has fallen back.
    CommandStatus status() const { return status(std::nothrow).value(); }
    Result<CommandStatus> status(std::nothrow_t) const {
        auto made = detail::result_of<rnet_command_status*>(rnet_command_get_status, handle());
        if (!made) return made.error();
        const detail::Handle<rnet_command_status, rnet_command_status_free> owned(*made);
        return CommandStatus{owned->driver,   owned->priority, owned->number,
                             owned->in_force, static_cast<FallbackReason>(owned->reason),
                             owned->fallback_failed};
    }
    /// Its counters.
    rnet_command_stats stats() const { return stats(std::nothrow).value(); }
    Result<rnet_command_stats> stats(std::nothrow_t) const {
        return detail::filled_by<rnet_command_stats>(rnet_command_get_stats, handle());
    }
    /// Falls back for the last time, and closes it.
    void close() noexcept {
        rnet_command_close(handle());
        detail::from_library();
    }
    rnet_command* handle() const noexcept { return handle_.get(); }

private:
    template <class T, class F>
    struct Functions {
        F apply;
        std::function<void(FallbackReason)> fall_back;
    };

    /// Whether a function of the user has succeeded. Its exception is reported.
    template <class F>
    static bool applied(F&& run) noexcept {
        bool done = false;
        detail::guarded([&] {
            run();
            done = true;
        });
        return done;
    }

    template <class T>
    static Result<Command> open(rnet_node* node, std::string_view topic, const char* forward,
                                rnet_apply_function apply, rnet_fallback_function on_fallback, void* context,
                                rnet_free_function free_context, const Fallback<T>& fallback,
                                const CommandOptions& options) {
        auto type = detail::type_of<T>();
        auto given = detail::initialised<rnet_command_options>();
        given.message_type = type ? type->handle() : nullptr;
        given.deadline_ns = detail::option_ns(options.deadline);
        given.fallback = fallback.kind_;
        given.fallback_message = {fallback.message_.data(), fallback.message_.size()};
        given.forward = forward;
        if (fallback.kind_ != RNET_FALLBACK_HANDLER || !fallback.handler_) on_fallback = nullptr;
        if (!type) {
            free_context(context);
            return type.error();
        }
        return detail::made_by<Command>(rnet_command_new, node, detail::CText(topic), &given, apply,
                                        on_fallback, context, free_context);
    }

    detail::Handle<rnet_command, rnet_command_free> handle_;
};

/// Options of a driver.
struct DriverOptions {
    /// The driver takes authority from drivers of a lower priority, up to 2,147,483,646.
    std::int32_t priority = 0;
    /// How long authority lasts after the last command, 1 ms to 1 h.
    std::chrono::nanoseconds lease = std::chrono::milliseconds(200);
    /// How long take() and retake() wait for a receiver.
    std::chrono::nanoseconds timeout = std::chrono::seconds(10);
    /// Whether lost authority is requested again by each call. Only if the robot may resume by itself.
    bool auto_retake = false;
    /// Whether authority lasts until the lease expires even if this process dies first, as for a robot stop.
    bool outlasts_driver = false;
};

/// The sending end of a command, with authority until that ends. One thread at a time may use it. The end of
/// its life releases authority.
template <class T>
class Driver {
public:
    /// Takes authority; waits for a receiver, but not for authority: Code::not_in_force if another driver has
    /// it.
    template <class N>
    static Result<Driver> take(const N& node, std::string_view topic, const DriverOptions& options,
                               std::nothrow_t) {
        auto type = detail::type_of<T>();
        if (!type) return type.error();
        auto given = detail::initialised<rnet_driver_options>();
        given.message_type = type->handle();
        given.priority = options.priority;
        given.auto_retake = options.auto_retake;
        given.outlasts_driver = options.outlasts_driver;
        given.lease_ns = detail::option_ns(options.lease);
        given.timeout_ns = detail::option_ns(options.timeout);
        return detail::made_by<Driver>(rnet_driver_take, node.handle(), detail::CText(topic), &given);
    }
    template <class N>
    static Driver take(const N& node, std::string_view topic, const DriverOptions& options = {}) {
        return take(node, topic, options, std::nothrow).value();
    }
    explicit Driver(rnet_driver* driver) noexcept : handle_(driver) {}

    /// Sends a command and renews the lease. Code::not_in_force: the authority has ended.
    void send(const T& command) { send(command, std::nothrow).value(); }
    Result<void> send(const T& command, std::nothrow_t) {
        Bytes bytes = detail::encoded<T>(command, buffer_);
        return detail::success_of(rnet_driver_send, handle(), bytes.data(), bytes.size());
    }
    /// Renews the lease without a command.
    void renew() { renew(std::nothrow).value(); }
    Result<void> renew(std::nothrow_t) { return detail::success_of(rnet_driver_renew, handle()); }
    /// Takes authority again after it has ended; waits for a receiver, for the time limit of the options.
    void retake() { retake(std::nothrow).value(); }
    Result<void> retake(std::nothrow_t) { return retake_ns(0); }
    /// As retake(), for a time of its own.
    void retake_for(detail::TimeLimit limit) { retake_for(limit, std::nothrow).value(); }
    Result<void> retake_for(detail::TimeLimit limit, std::nothrow_t) {
        return retake_ns(limit.wait_ns());
    }
    /// Whether it has authority, as last reported by the receiver; false once it is closed.
    bool in_force() const noexcept {
        bool in_force = false;
        return rnet_driver_in_force(handle(), &in_force, nullptr) == RNET_OK && in_force;
    }
    /// The number of its authority: higher for each that the receiver grants.
    std::uint64_t number() const { return number(std::nothrow).value(); }
    Result<std::uint64_t> number(std::nothrow_t) const {
        return detail::result_of<std::uint64_t>(rnet_driver_number, handle());
    }
    /// The topic.
    std::string_view topic() const& noexcept { return rnet_driver_topic(handle()); }
    std::string topic() && { return std::string(topic()); }
    /// Releases authority and closes it: the receiver falls back at once.
    void release() { release(std::nothrow).value(); }
    Result<void> release(std::nothrow_t) { return detail::success_of(rnet_driver_release, handle()); }
    /// As release(), without reporting errors.
    void close() noexcept { rnet_driver_close(handle()); }
    rnet_driver* handle() const noexcept { return handle_.get(); }

private:
    Result<void> retake_ns(std::int64_t limit) {
        return detail::success_of(rnet_driver_retake, handle(), limit);
    }

    std::vector<std::uint8_t> buffer_;
    detail::Handle<rnet_driver, rnet_driver_free> handle_;
};

}  // namespace rnet
