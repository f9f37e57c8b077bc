// Values of the state.
#pragma once

#include <rnet/error.hpp>
#include <rnet/message.hpp>
#include <rnet/span.hpp>

#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace rnet {

class Value;

/// The kind of a value.
enum class ValueKind : int {
    none = RNET_VALUE_NONE,
    boolean = RNET_VALUE_BOOL,
    integer = RNET_VALUE_INT,
    floating = RNET_VALUE_FLOAT,
    string = RNET_VALUE_STRING,
    bytes = RNET_VALUE_BYTES,
    json = RNET_VALUE_JSON,
    list = RNET_VALUE_LIST,
    set = RNET_VALUE_SET,
    message = RNET_VALUE_MESSAGE,
    unreadable = RNET_VALUE_UNREADABLE,
};

namespace detail {

inline rnet_bytes c_bytes(Bytes bytes) noexcept { return {bytes.data(), bytes.size()}; }
inline std::string_view text_of_c(rnet_bytes bytes) noexcept {
    return {reinterpret_cast<const char*>(bytes.data), bytes.len};
}
/// Checks the kind of the value of a key, and returns its content.
inline Result<rnet_value_data> read(const rnet_value* value, const char* key, ValueKind kind,
                                    const rnet_type* type = nullptr) {
    auto same = success_of(rnet_value_check, value, key, static_cast<int>(kind), type);
    if (!same) return same.error();
    return rnet_value_read(value);
}
/// The content of a value to be made.
inline rnet_value_data data_of(ValueKind kind) noexcept {
    rnet_value_data data{};
    data.kind = static_cast<int>(kind);
    return data;
}
inline rnet_value_data data_of(ValueKind kind, Bytes bytes, const rnet_type* type = nullptr) noexcept {
    rnet_value_data data = data_of(kind);
    data.bytes = c_bytes(bytes);
    data.message_type = type;
    return data;
}

/// Whether the C API reads a T without an object for the value.
template <class T>
inline constexpr bool is_scalar =
    std::is_same_v<T, bool> || std::is_same_v<T, std::int64_t> || std::is_same_v<T, double>;
/// The T in this content of a value; fails if it has another kind.
template <class T>
Result<T> scalar_of(const rnet_value_data& data) {
    if constexpr (std::is_same_v<T, bool>) {
        if (data.kind == RNET_VALUE_BOOL) return data.boolean;
    } else if constexpr (std::is_same_v<T, double>) {
        if (data.kind == RNET_VALUE_FLOAT) return data.number;
    } else {
        if (data.kind == RNET_VALUE_INT) return data.integer;
    }
    return Error(Code::state_type);
}

/// Whether a Value can be made of T implicitly: it is not a message.
template <class T, class = void>
inline constexpr bool is_value = std::is_arithmetic_v<T> || std::is_convertible_v<const T&, std::string_view>;
template <>
inline constexpr bool is_value<Value> = true;
template <>
inline constexpr bool is_value<Bytes> = true;
template <class T>
inline constexpr bool is_value<std::vector<T>> = is_value<T>;
template <class T>
inline constexpr bool is_value<std::set<T>> = is_value<T>;

}  // namespace detail

/// How T is stored in the state. Defined for bool, numbers, texts, bytes (Bytes, std::vector<std::uint8_t>),
/// std::vector (a list), std::set (a set), Value, and for messages, which Message<T> describes.
template <class T, class Enable = void>
struct StateType;

/// A value of the state: a boolean, an integer, a float, a string, bytes, JSON, a list, a set or a message.
///
///     rnet::Value mode = "idle";
///     rnet::Value gains = rnet::Value::json(R"({"kp": 12.5})");
///     std::optional<double> number = mode.as<double>();      // none: it is a string
class Value {
public:
    /// No value: it cannot be stored.
    Value() = default;
    /// Of a bool, a number, a text, bytes, or a std::vector (list) or std::set (set) of these.
    template <class T, class = std::enable_if_t<detail::is_value<std::decay_t<const T&>> &&
                                                !std::is_same_v<std::decay_t<const T&>, Value>>>
    Value(const T& value) : Value(StateType<std::decay_t<const T&>>::put(value).value()) {}
    /// JSON text, checked.
    static Value json(std::string_view text) { return json(text, std::nothrow).value(); }
    static Result<Value> json(std::string_view text, std::nothrow_t) {
        return make(rnet_value_new, detail::data_of(ValueKind::json, bytes_of(text)));
    }
    /// A list of values of any kinds.
    static Value list(const std::vector<Value>& items) { return list(items, std::nothrow).value(); }
    static Result<Value> list(const std::vector<Value>& items, std::nothrow_t) {
        return make_of(ValueKind::list, items);
    }
    /// A set of values of any kinds, sorted and without duplicates.
    static Value set(const std::vector<Value>& items) { return set(items, std::nothrow).value(); }
    static Result<Value> set(const std::vector<Value>& items, std::nothrow_t) {
        return make_of(ValueKind::set, items);
    }
    /// A message.
    template <class T>
    static Value message(const T& message) { return StateType<T>::put(message).value(); }
    /// Takes over an object of the C API.
    explicit Value(rnet_value* handle) noexcept : handle_(handle) {}
    /// Copies an object of the C API.
    static Value copy(const rnet_value* value) { return Value(rnet_value_copy(value)); }
    /// Calls a function of the C API that makes a value.
    template <class F, class... Args>
    static Result<Value> make(F&& function, Args&&... args) {
        auto made = detail::result_of<rnet_value*>(function, args...);
        if (!made) return made.error();
        return Value(*made);
    }

    Value(const Value& other) : handle_(rnet_value_copy(other.handle())) {}
    Value(Value&&) noexcept = default;
    Value& operator=(const Value& other) {
        if (this != &other) handle_.reset(rnet_value_copy(other.handle()));
        return *this;
    }
    Value& operator=(Value&&) noexcept = default;

    /// Its kind.
    ValueKind kind() const noexcept { return static_cast<ValueKind>(data().kind); }
    /// It as a T, if it has that kind.
    template <class T>
    std::optional<T> as() const {
        if (!handle()) return std::nullopt;
        auto value = StateType<T>::get(handle(), "");
        if (!value) return std::nullopt;
        return std::move(*value);
    }
    /// The text of a string, of JSON, or of the fault of an unreadable value; a view, valid as long as this.
    std::string_view text() const& noexcept { return detail::text_of_c(data().bytes); }
    std::string text() && { return std::string(text()); }
    /// The bytes of bytes or of a message; a view, valid as long as this.
    Bytes bytes() && = delete;  // They would end with the value: keep it in a variable.
    Bytes bytes() const& noexcept { return bytes_of(text()); }
    /// The name of its type: "int"; of a message its full name.
    std::string_view type_name() const& noexcept { return detail::text_of_c(rnet_value_type_name(handle())); }
    std::string type_name() && { return std::string(type_name()); }
    /// Number of items of a list or set.
    std::size_t size() const noexcept { return data().item_count; }
    /// A copy of an item of a list or set; no value if there is none.
    Value operator[](std::size_t index) const { return copy(rnet_value_item(handle(), index)); }

    friend bool operator==(const Value& a, const Value& b) noexcept {
        return rnet_value_equal(a.handle(), b.handle());
    }
    friend bool operator!=(const Value& a, const Value& b) noexcept { return !(a == b); }

    const rnet_value* handle() const noexcept { return handle_.get(); }

private:
    rnet_value_data data() const noexcept { return rnet_value_read(handle()); }
    static Result<Value> make_of(ValueKind kind, const std::vector<Value>& items) {
        std::vector<const rnet_value*> handles;
        for (const Value& item : items) handles.push_back(item.handle());
        rnet_value_data data = detail::data_of(kind);
        data.items = handles.data();
        data.item_count = handles.size();
        return make(rnet_value_new, data);
    }

    detail::Handle<rnet_value, rnet_value_free> handle_;
};

// Messages.
template <class T, class Enable>
struct StateType {
    static Result<Value> put(const T& message) {
        auto type = Message<T>::type();
        if (!type) return type.error();
        std::vector<std::uint8_t> buffer;
        const Bytes bytes = Message<T>::encode(message, buffer);
        return Value::make(rnet_value_new, detail::data_of(ValueKind::message, bytes, type->handle()));
    }
    static Result<T> get(const rnet_value* value, const char* key) {
        static_assert(!detail::has_data<T>, "rnet: images, point clouds and tensors are messages of topics");
        auto type = Message<T>::type();
        if (!type) return type.error();
        auto data = detail::read(value, key, ValueKind::message, type->handle());
        if (!data) return data.error();
        T message{};
        auto decoded = Message<T>::decode(Bytes(data->bytes.data, data->bytes.len), message);
        if (!decoded) return decoded.error();
        return Result<T>(std::move(message));
    }
};

template <>
struct StateType<Value> {
    static Result<Value> put(const Value& value) { return value; }
    static Result<Value> get(const rnet_value* value, const char*) { return Value::copy(value); }
};

template <>
struct StateType<bool> {
    static Result<Value> put(bool value) {
        auto data = detail::data_of(ValueKind::boolean);
        data.boolean = value;
        return Value::make(rnet_value_new, data);
    }
    static Result<bool> get(const rnet_value* value, const char* key) {
        auto data = detail::read(value, key, ValueKind::boolean);
        if (!data) return data.error();
        return data->boolean;
    }
};

template <class T>
struct StateType<T, std::enable_if_t<std::is_integral_v<T> && !std::is_same_v<T, bool>>> {
    static Result<Value> put(T value) {
        if constexpr (sizeof(T) == 8 && std::is_unsigned_v<T>) {
            if (value > std::uint64_t{INT64_MAX}) return Error(Code::bad_value);
        }
        auto data = detail::data_of(ValueKind::integer);
        data.integer = static_cast<std::int64_t>(value);
        return Value::make(rnet_value_new, data);
    }
    static Result<T> get(const rnet_value* value, const char* key) {
        using Limits = std::numeric_limits<T>;
        constexpr std::int64_t least = static_cast<std::int64_t>(Limits::min());
        constexpr std::int64_t most = sizeof(T) == 8 ? INT64_MAX : static_cast<std::int64_t>(Limits::max());
        auto data = detail::read(value, key, ValueKind::integer);
        if (!data) return data.error();
        const std::int64_t found = data->integer;
        if (found >= least && found <= most) return static_cast<T>(found);
        return Error(Code::bad_value, "value of " + std::string(key) + ": " + std::to_string(found) +
                                          " is not between " + std::to_string(least) + " and " +
                                          std::to_string(most));
    }
};

template <class T>
struct StateType<T, std::enable_if_t<std::is_floating_point_v<T>>> {
    static Result<Value> put(T value) {
        auto data = detail::data_of(ValueKind::floating);
        data.number = static_cast<double>(value);
        return Value::make(rnet_value_new, data);
    }
    static Result<T> get(const rnet_value* value, const char* key) {
        auto data = detail::read(value, key, ValueKind::floating);
        if (!data) return data.error();
        return static_cast<T>(data->number);
    }
};

template <class T>
struct StateType<T, std::enable_if_t<std::is_convertible_v<const T&, std::string_view>>> {
    static Result<Value> put(std::string_view value) {
        return Value::make(rnet_value_new, detail::data_of(ValueKind::string, bytes_of(value)));
    }
    static Result<T> get(const rnet_value* value, const char* key) {
        static_assert(std::is_same_v<T, std::string>, "texts are read as std::string");
        auto data = detail::read(value, key, ValueKind::string);
        if (!data) return data.error();
        return T(detail::text_of_c(data->bytes));
    }
};

template <>
struct StateType<Bytes> {
    static Result<Value> put(Bytes value) {
        return Value::make(rnet_value_new, detail::data_of(ValueKind::bytes, value));
    }
};

template <>
struct StateType<std::vector<std::uint8_t>> {
    static Result<Value> put(const std::vector<std::uint8_t>& value) { return StateType<Bytes>::put(value); }
    static Result<std::vector<std::uint8_t>> get(const rnet_value* value, const char* key) {
        auto data = detail::read(value, key, ValueKind::bytes);
        if (!data) return data.error();
        return std::vector<std::uint8_t>(data->bytes.data, data->bytes.data + data->bytes.len);
    }
};

namespace detail {

/// Lists and sets.
template <class Container, class Item, ValueKind Kind>
struct ItemsType {
    static Result<Value> put(const Container& items) {
        std::vector<Value> values;
        values.reserve(items.size());
        for (const Item& item : items) {
            auto value = StateType<Item>::put(item);
            if (!value) return value;
            values.push_back(std::move(*value));
        }
        if constexpr (Kind == ValueKind::list) {
            return Value::list(values, std::nothrow);
        } else {
            return Value::set(values, std::nothrow);
        }
    }
    static Result<Container> get(const rnet_value* value, const char* key) {
        auto data = read(value, key, Kind);
        if (!data) return data.error();
        Container items;
        for (std::size_t at = 0; at < data->item_count; ++at) {
            auto item = StateType<Item>::get(rnet_value_item(value, at), key);
            if (!item) return item.error();
            items.insert(items.end(), std::move(*item));
        }
        return Result<Container>(std::move(items));
    }
};

}  // namespace detail

template <class T>
struct StateType<std::vector<T>> : detail::ItemsType<std::vector<T>, T, ValueKind::list> {};
template <class T>
struct StateType<std::set<T>> : detail::ItemsType<std::set<T>, T, ValueKind::set> {};

}  // namespace rnet
