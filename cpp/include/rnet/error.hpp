// Errors and results. Each call has two forms:
//
//     publisher.send(message);                        // throws rnet::Error
//     auto sent = publisher.send(message, std::nothrow);   // returns rnet::Result<void>
//     if (!sent) std::cerr << sent.error().what() << '\n';
//
// Programs that are compiled with -fno-exceptions use the second form; the first one then ends the program
// with the text of the error.
#pragma once

#include <rnet/detail/tsan.hpp>

#include <rnet.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

#if defined(__cpp_exceptions) || defined(__EXCEPTIONS)
#define RNET_HAS_EXCEPTIONS 1
#else
#define RNET_HAS_EXCEPTIONS 0
#endif

namespace rnet {

/// The outcome of a call: see rnet_code in rnet.h and docs/guide/errors.md.
enum class Code : int {
    ok = RNET_OK,
    bad_name = RNET_BAD_NAME,
    message_too_large = RNET_MESSAGE_TOO_LARGE,
    incompatible_type = RNET_INCOMPATIBLE_TYPE,
    incompatible_qos = RNET_INCOMPATIBLE_QOS,
    full = RNET_FULL,
    timeout = RNET_TIMEOUT,
    detached = RNET_DETACHED,
    peer_lost = RNET_PEER_LOST,
    out_of_memory = RNET_OUT_OF_MEMORY,
    limit_reached = RNET_LIMIT_REACHED,
    too_many_pins = RNET_TOO_MANY_PINS,
    name_taken = RNET_NAME_TAKEN,
    no_permission = RNET_NO_PERMISSION,
    layout_version = RNET_LAYOUT_VERSION,
    corrupt = RNET_CORRUPT,
    malformed = RNET_MALFORMED,
    closed = RNET_CLOSED,
    interrupted = RNET_INTERRUPTED,
    bad_qos = RNET_BAD_QOS,
    bad_value = RNET_BAD_VALUE,
    conflict = RNET_CONFLICT,
    state_type = RNET_STATE_TYPE,
    storage = RNET_STORAGE,
    server_lost = RNET_SERVER_LOST,
    home_away = RNET_HOME_AWAY,
    call_failed = RNET_CALL_FAILED,
    refused = RNET_REFUSED,
    not_in_force = RNET_NOT_IN_FORCE,
    receiver_exists = RNET_RECEIVER_EXISTS,
    cancelled = RNET_CANCELLED,
    call_lost = RNET_CALL_LOST,
    io = RNET_IO,
    other = RNET_OTHER,
    wrong_thread = RNET_WRONG_THREAD,
    internal = RNET_INTERNAL,
    invalid_argument = RNET_INVALID_ARGUMENT,
    record_failed = RNET_RECORD_FAILED,
    read_failed = RNET_READ_FAILED,
};

/// The name of a code: "timeout".
inline std::string_view name_of(Code code) { return rnet_code_name(static_cast<int>(code)); }

/// What failed, on which topic or node, and what to do. Copies share one text.
class Error : public std::exception {
public:
    /// Takes the error of a call of the C API; only its code if `error` is null.
    explicit Error(Code code, rnet_error* error = nullptr) : code_(code) {
        if (!error) return;
        text_ = text_of(error);
        rnet_error_free(error);
    }
    /// An error of a program, with its text.
    Error(Code code, std::string text) : code_(code) {
        text_ = std::make_shared<const Text>(Text{std::move(text), {}, {}, {}, {}});
    }
    /// A copy of an error that belongs to the library.
    static Error copy_of(const rnet_error* error) {
        Error copy(static_cast<Code>(rnet_error_code(error)));
        copy.text_ = text_of(error);
        return copy;
    }

    /// What to match on.
    Code code() const noexcept { return code_; }
    /// The whole text.
    const char* what() const noexcept override {
        return text_ ? text_->what.c_str() : rnet_code_name(static_cast<int>(code_));
    }
    /// The topic, service or command; empty if it is not about one. A text of a temporary is a copy, here and in all
    /// classes; bytes of a temporary do not compile.
    std::string_view topic() const& noexcept { return text_ ? std::string_view(text_->topic) : ""; }
    std::string topic() && { return std::string(topic()); }
    /// The peer node; empty if it is not about one.
    std::string_view node() const& noexcept { return text_ ? std::string_view(text_->node) : ""; }
    std::string node() && { return std::string(node()); }
    /// For Code::call_failed the kind of the handler's error, such as the class of its exception; for
    /// Code::cancelled the reason, such as "caller"; otherwise empty.
    std::string_view kind() const& noexcept { return text_ ? std::string_view(text_->kind) : ""; }
    std::string kind() && { return std::string(kind()); }
    /// For Code::call_failed the text of the handler's error; for Code::refused by an action the node whose goal
    /// runs; otherwise empty.
    std::string_view detail() const& noexcept { return text_ ? std::string_view(text_->detail) : ""; }
    std::string detail() && { return std::string(detail()); }

private:
    struct Text {
        std::string what, topic, node, kind, detail;
    };
    static std::shared_ptr<const Text> text_of(const rnet_error* error) {
        auto given = [](const char* text) { return std::string(text ? text : ""); };
        Text text{given(rnet_error_text(error)), given(rnet_error_topic(error)), given(rnet_error_node(error)),
                  given(rnet_error_kind(error)), given(rnet_error_detail(error))};
        return std::make_shared<const Text>(std::move(text));
    }

    Code code_;
    std::shared_ptr<const Text> text_;
};

namespace detail {

/// Throws the error, or ends the program if it is compiled without exceptions.
[[noreturn]] inline void raise(const Error& error) {
#if RNET_HAS_EXCEPTIONS
    throw error;
#else
    std::fprintf(stderr, "rnet: %s\n", error.what());
    std::abort();
#endif
}

}  // namespace detail

/// A value or an Error.
template <class T>
class [[nodiscard]] Result {
public:
    Result(T value) : held_(std::in_place_index<0>, std::move(value)) {}
    Result(Error error) : held_(std::in_place_index<1>, std::move(error)) {}

    /// Whether it holds a value.
    explicit operator bool() const noexcept { return held_.index() == 0; }
    bool has_value() const noexcept { return held_.index() == 0; }

    /// The value. Throws the error, or ends the program if it is compiled without exceptions.
    T& value() & {
        if (!has_value()) detail::raise(error());
        return *std::get_if<0>(&held_);
    }
    T value() && {
        if (!has_value()) detail::raise(error());
        return std::move(*std::get_if<0>(&held_));
    }
    /// The value, which must exist.
    T& operator*() & { return *std::get_if<0>(&held_); }
    const T& operator*() const& { return *std::get_if<0>(&held_); }
    T operator*() && { return std::move(*std::get_if<0>(&held_)); }
    T* operator->() { return std::get_if<0>(&held_); }
    const T* operator->() const { return std::get_if<0>(&held_); }
    /// The error, which must exist.
    const Error& error() const& { return *std::get_if<1>(&held_); }
    Error error() && { return std::move(*std::get_if<1>(&held_)); }

private:
    std::variant<T, Error> held_;
};

/// Success or an Error.
template <>
class [[nodiscard]] Result<void> {
public:
    Result() = default;
    Result(Error error) : error_(std::move(error)) {}

    explicit operator bool() const noexcept { return !error_; }
    bool has_value() const noexcept { return !error_; }
    /// Throws the error, if there is one.
    void value() const {
        if (error_) detail::raise(*error_);
    }
    /// The error, which must exist.
    const Error& error() const& { return *error_; }
    Error error() && { return std::move(*error_); }

private:
    std::optional<Error> error_;
};

namespace detail {

/// The result of a call of the C API that gives nothing but its code: check(rnet_x(…, &error), error). A reference,
/// because arguments are evaluated in any order.
inline Result<void> check(rnet_code code, rnet_error* const& error) {
    if (code == RNET_OK) return {};
    return Error(static_cast<Code>(code), error);
}

/// Options, or a struct for results, of the C API, with all defaults.
template <class Options>
Options initialised() noexcept {
    Options options{};
    options.struct_size = sizeof(Options);
    return options;
}

/// Calls a function of the C API, whose last arguments are the result and the error.
template <class Out, class F, class... Args>
Result<Out> result_of(F&& function, Args&&... args) {
    Out out{};
    rnet_error* error = nullptr;
    const rnet_code code = function(args..., &out, &error);
    if (code != RNET_OK) return Error(static_cast<Code>(code), error);
    return Result<Out>(std::move(out));
}
/// Calls a function of the C API, whose last argument is the error.
template <class F, class... Args>
Result<void> success_of(F&& function, Args&&... args) {
    rnet_error* error = nullptr;
    const rnet_code code = function(args..., &error);
    return check(code, error);
}
/// As result_of(), for an object of the C API, which becomes one of `Owner`.
template <class Owner, class F, class... Args>
Result<Owner> made_by(F&& function, Args&&... args) {
    using Made = std::remove_const_t<std::remove_pointer_t<decltype(std::declval<Owner&>().handle())>>;
    auto made = result_of<Made*>(function, args...);
    if (!made) return made.error();
    return Owner(*made);
}
/// As result_of(), for a struct that the function fills.
template <class Struct, class F, class... Args>
Result<Struct> filled_by(F&& function, Args&&... args) {
    auto filled = initialised<Struct>();
    auto done = success_of(function, args..., &filled);
    if (!done) return done.error();
    return filled;
}

/// A text as an argument of the C API.
class CText {
public:
    explicit CText(std::string_view text) : text_(text) {}
    operator const char*() const noexcept { return text_.c_str(); }

private:
    std::string text_;
};

/// Owns an object of the C API.
template <class T, void (*Free)(T*)>
struct Deleter {
    void operator()(T* object) const noexcept {
        to_library();
        Free(object);
        from_library();
    }
};
template <class T, void (*Free)(T*)>
using Handle = std::unique_ptr<T, Deleter<T, Free>>;

}  // namespace detail
}  // namespace rnet
