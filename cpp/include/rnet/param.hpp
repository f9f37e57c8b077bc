// Parameters: the settings of a node, which people and other nodes may change while it runs.
//
//     rnet::ParamOptions<double> options;
//     options.default_value = 1.0;
//     options.max = 10.0;
//     auto gain = rnet::Param<double>::declare(node, "gain", options);
//     use(gain.get());
#pragma once

#include <rnet/entry.hpp>
#include <rnet/guard.hpp>

#include <functional>
#include <memory>

namespace rnet {
namespace detail {

/// The name of a type of parameters, and the type of its bounds.
template <class T>
struct ParamType;
template <>
struct ParamType<bool> {
    using Item = bool;
    static std::string name() { return "bool"; }
};
template <>
struct ParamType<std::int64_t> {
    using Item = std::int64_t;
    static std::string name() { return "int"; }
};
template <>
struct ParamType<double> {
    using Item = double;
    static std::string name() { return "float"; }
};
template <>
struct ParamType<std::string> {
    using Item = std::string;
    static std::string name() { return "str"; }
};
template <class T>
struct ParamType<std::vector<T>> {
    using Item = T;
    static std::string name() { return "list[" + ParamType<T>::name() + "]"; }
};

/// The value of an option, which must live as long as the call; null if it is not set.
template <class T>
Result<Value> option_value(const std::optional<T>& option) {
    if (!option) return Value();
    return StateType<T>::put(*option);
}

}  // namespace detail

/// Options of Param<T>::declare(), for T = bool, std::int64_t, double, std::string, or a std::vector of
/// these.
template <class T>
struct ParamOptions {
    /// The value of an unset parameter. Without it, it must be set before its node starts.
    std::optional<T> default_value = {};
    /// The bounds of a number, or of each item of a list.
    std::optional<typename detail::ParamType<T>::Item> min = {};
    std::optional<typename detail::ParamType<T>::Item> max = {};
    /// The allowed texts of the value, or of each item of a list; empty: all.
    std::vector<std::string> choices = {};
    /// The unit, for display: "1/s".
    std::string unit = {};
    /// A description for users.
    std::string description = {};
    /// Whether it cannot be set while its node runs.
    bool read_only = false;
    /// Whether its value survives a power cut.
    bool durable = false;
    /// Called with each new value of any writer, on a thread of the node, while the parameter exists.
    /// Exceptions are counted and logged.
    std::function<void(const T&)> on_change = {};
    /// Called by declare() if the stored value is not allowed, so that the parameter has its default. Without
    /// it, a line on stderr reports that.
    std::function<void(const RefusedValue&)> on_refused = {};
};

/// A parameter of a node. Any thread may use it. Its value outlives the node.
template <class T>
class Param {
public:
    /// Declares a parameter of a node: its key in the state is /params/<node>/<name>. A stored value is kept
    /// if it is allowed.
    template <class Node>
    static Param declare(const Node& node, std::string_view name, const ParamOptions<T>& options = {}) {
        return declare(node, name, options, std::nothrow).value();
    }
    template <class Node>
    static Result<Param> declare(const Node& node, std::string_view name, const ParamOptions<T>& given,
                                 std::nothrow_t) {
        auto unset = detail::option_value(given.default_value);
        if (!unset) return unset.error();
        auto min = detail::option_value(given.min);
        if (!min) return min.error();
        auto max = detail::option_value(given.max);
        if (!max) return max.error();
        const std::string kind = detail::ParamType<T>::name();
        std::vector<const char*> choices;
        for (const std::string& choice : given.choices) choices.push_back(choice.c_str());
        auto options = detail::initialised<rnet_param_options>();
        options.kind = kind.c_str();
        options.default_value = unset->handle();
        options.min = min->handle();
        options.max = max->handle();
        options.choices = choices.data();
        options.choice_count = choices.size();
        options.unit = given.unit.c_str();
        options.description = given.description.c_str();
        options.read_only = given.read_only;
        options.durable = given.durable;
        options.quiet = static_cast<bool>(given.on_refused);
        const bool calls = static_cast<bool>(given.on_change);
        void* context = calls ? detail::context_of(Function(given.on_change)) : nullptr;
        auto param = detail::made_by<Param>(rnet_param_declare, node.handle(), detail::CText(name), &options,
                                            calls ? run : nullptr, context,
                                            calls ? detail::free_context<Function> : nullptr);
        if (param && given.on_refused) {
            if (const auto refused = param->refused()) given.on_refused(*refused);
        }
        return param;
    }
    /// Takes over an object of the C API.
    explicit Param(rnet_param* handle) noexcept : handle_(handle) {}

    /// The current value. It never waits, and does not allocate for a bool, integer or double: for control
    /// loops.
    T get() const { return get(std::nothrow).value(); }
    Result<T> get(std::nothrow_t) const {
        if constexpr (detail::is_scalar<T>) {
            auto data = detail::result_of<rnet_value_data>(rnet_param_read, handle());
            if (!data) return data.error();
            return detail::scalar_of<T>(*data);
        } else {
            auto value = Value::make(rnet_param_get, handle());
            if (!value) return value.error();
            return StateType<T>::get(value->handle(), c_info().key);
        }
    }
    /// Sets the value; fails with Code::bad_value and the reason if it is not allowed.
    void set(const T& value) { set(value, std::nothrow).value(); }
    Result<void> set(const T& value, std::nothrow_t) {
        auto given = StateType<T>::put(value);
        if (!given) return given.error();
        return detail::success_of(rnet_param_set, handle(), given->handle());
    }
    /// Resets it to its default, as if it had never been set.
    void reset() { reset(std::nothrow).value(); }
    Result<void> reset(std::nothrow_t) { return detail::success_of(rnet_param_reset, handle()); }
    /// Calls `callback(const T&)` with each new value of any writer, on a thread of the node, until the guard
    /// is destroyed.
    template <class F>
    Guard on_change(F&& callback) const { return on_change(std::forward<F>(callback), std::nothrow).value(); }
    template <class F>
    Result<Guard> on_change(F&& callback, std::nothrow_t) const {
        void* context = detail::context_of(Function(std::forward<F>(callback)));
        return detail::made_by<Guard>(rnet_param_on_change, handle(), run, context,
                                      detail::free_context<Function>);
    }

    /// Its name in its node: "/gain".
    std::string_view name() const& { return c_info().name; }
    std::string name() && { return std::string(name()); }
    /// Its key in the state: "/params/arm/gain".
    std::string_view key() const& { return c_info().key; }
    std::string key() && { return std::string(key()); }
    /// The declaration; its `value` is unset.
    ParamInfo info() const { return detail::param_info_of(c_info()); }
    /// The stored value that was not allowed at the declaration.
    std::optional<RefusedValue> refused() const { return info().refused; }

    rnet_param* handle() const noexcept { return handle_.get(); }

private:
    using Function = std::function<void(const T&)>;

    static void run(const rnet_value* value, void* context) noexcept {
        detail::guarded([&] {
            auto typed = StateType<T>::get(value, "");
            if (typed) (*static_cast<Function*>(context))(*typed);
        });
    }
    const rnet_param_info& c_info() const { return *rnet_param_describe(handle()); }

    detail::Handle<rnet_param, rnet_param_free> handle_;
};

}  // namespace rnet
