// What reads of the state return, and the options of writes.
#pragma once

#include <rnet/detail/callback.hpp>
#include <rnet/value.hpp>

#include <chrono>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rnet {

/// A key of the state with its value and its metadata.
struct Entry {
    /// The key, with its leading slash.
    std::string key;
    /// Its value.
    Value value;
    /// Revision at which it was written: a number that grows with each change of any key.
    std::uint64_t revision = 0;
    /// Number of writes of the key since it was created, from 1.
    std::uint64_t version = 0;
    /// Name of the node that wrote it.
    std::string owner;
    /// Time of the write, in ns since 1970 UTC.
    std::uint64_t written_unix_ns = 0;
    /// Whether it is kept on disk.
    bool durable = false;
    /// Remaining time to live; none if it does not expire.
    std::optional<std::chrono::nanoseconds> ttl_left;
    /// Expiry time, in ns of CLOCK_BOOTTIME; 0: never.
    std::uint64_t expires_boot_ns = 0;
    /// The value that it gets when the node that wrote it ends.
    std::optional<Value> last_will;
    /// Whether it is deleted when the node that wrote it ends.
    bool last_will_delete = false;

    /// The value as a T; fails with Code::state_type if it has another type.
    template <class T>
    T get() const { return get<T>(std::nothrow).value(); }
    template <class T>
    Result<T> get(std::nothrow_t) const { return StateType<T>::get(value.handle(), key.c_str()); }
};

/// Entries at one moment, sorted by key.
struct Snapshot {
    /// The revision of the state.
    std::uint64_t revision = 0;
    std::vector<Entry> entries;
};

/// A change of a key.
struct Change {
    /// The key, with its leading slash.
    std::string key;
    /// The key as it is now; none: it was deleted.
    std::optional<Entry> entry;
    /// Whether it was deleted because it expired; none: unknown, because the watch was too slow.
    std::optional<bool> expired;
    /// Revision of the change.
    std::uint64_t revision = 0;
    /// Number of values of this key that the watch missed before this one; none: unknown.
    std::optional<std::uint64_t> skipped;
    /// Whether this is not a change, but a value that existed when the watch began.
    bool initial = false;

    /// The new value as a T; none if the key was deleted. Fails with Code::state_type if it has another type.
    template <class T>
    std::optional<T> get() const {
        if (!entry) return std::nullopt;
        return entry->template get<T>();
    }
};

/// Options of a write. A write without a time to live or a last will removes those of the previous write.
struct PutOptions {
    /// Writes only if the key is absent, otherwise Code::conflict.
    bool if_absent = false;
    /// Writes only at this revision (0: absent), otherwise Code::conflict.
    std::optional<std::uint64_t> if_revision = {};
    /// The key is deleted if it is not written again for this time.
    std::optional<std::chrono::nanoseconds> ttl = {};
    /// As ttl, as a time of CLOCK_BOOTTIME in ns; 0: never.
    std::uint64_t expires_boot_ns = 0;
    /// Whether the key is kept on disk; default: as it is.
    std::optional<bool> durable = {};
    /// The value that the key gets when this node ends for any reason, unless another writer has written it
    /// since.
    std::optional<Value> last_will = {};
    /// Deletes the key when this node ends for any reason, unless another writer has written it since.
    bool last_will_delete = false;
    /// Allows another type than that of the current value.
    bool change_type = false;

    /// As the C API takes it: a view of this.
    rnet_put_options c() const {
        rnet_put_options options{};
        options.struct_size = sizeof options;
        options.if_absent = if_absent || if_revision == std::uint64_t{0};
        options.if_revision = if_revision.value_or(0);
        options.ttl_ns = detail::option_ns(ttl);
        options.expires_boot_ns = expires_boot_ns;
        options.durable = durable ? (*durable ? 1 : 2) : 0;
        options.last_will = last_will ? last_will->handle() : nullptr;
        options.last_will_delete = last_will_delete;
        options.change_type = change_type;
        return options;
    }
};

/// A stored value of a parameter that is not allowed.
struct RefusedValue {
    /// The value, as text.
    std::string value;
    /// Why it is not allowed: "is above its maximum 10.0".
    std::string why;
    /// The node that has set it.
    std::string set_by;
};

/// A parameter of any node.
struct ParamInfo {
    /// Its key in the state: "/params/arm/gain".
    std::string key;
    /// The node that declared it: "/arm"; empty if none has, and then the rest except `value` is unset, too.
    std::string node;
    /// Its name in that node: "/gain".
    std::string name;
    /// The type of its values: "float", "list[str]".
    std::string kind;
    std::optional<Value> value;
    std::optional<Value> default_value;
    std::optional<Value> min;
    std::optional<Value> max;
    std::vector<std::string> choices;
    std::string unit;
    std::string description;
    /// Whether it cannot be set while its node runs.
    bool read_only = false;
    /// Whether its value survives a power cut.
    bool durable = false;
    /// Whether it is unset, so that it has its default.
    bool is_default = false;
    /// Why its declaration cannot be read.
    std::optional<std::string> problem;
    /// The stored value that its node has found and that is not allowed.
    std::optional<RefusedValue> refused;
};

namespace detail {

inline std::optional<Value> optional_value(const rnet_value* value) {
    if (!value) return std::nullopt;
    return Value::copy(value);
}

inline Entry entry_of(const rnet_entry* entry) {
    rnet_entry_info info{};
    info.struct_size = sizeof info;
    rnet_entry_read(entry, &info, nullptr);
    Entry made;
    made.key = info.key;
    made.value = Value::copy(info.value);
    made.revision = info.revision;
    made.version = info.version;
    made.owner = info.owner;
    made.written_unix_ns = info.written_unix_ns;
    made.durable = info.durable;
    if (info.ttl_left_ns != RNET_FOREVER) made.ttl_left = std::chrono::nanoseconds(info.ttl_left_ns);
    made.expires_boot_ns = info.expires_boot_ns;
    made.last_will = optional_value(info.last_will);
    made.last_will_delete = info.last_will_delete;
    return made;
}

/// The entry, if any, that a function of the C API gives.
template <class F, class... Args>
Result<std::optional<Entry>> entry_from(F&& function, Args... args) {
    auto found = result_of<rnet_entry*>(function, args...);
    if (!found) return found.error();
    if (!*found) return std::optional<Entry>();
    const Handle<rnet_entry, rnet_entry_free> entry(*found);
    return std::optional<Entry>(entry_of(entry.get()));
}

/// The entries that a function of the C API gives.
template <class F, class... Args>
Result<Snapshot> entries_from(F&& function, Args... args) {
    auto found = result_of<rnet_entry_list*>(function, args...);
    if (!found) return found.error();
    const Handle<rnet_entry_list, rnet_entry_list_free> list(*found);
    Snapshot snapshot;
    snapshot.revision = rnet_entry_list_revision(list.get());
    const std::size_t count = rnet_entry_list_count(list.get());
    snapshot.entries.reserve(count);
    for (std::size_t i = 0; i < count; ++i) {
        snapshot.entries.push_back(entry_of(rnet_entry_list_get(list.get(), i)));
    }
    return Result<Snapshot>(std::move(snapshot));
}

/// The texts that a function of the C API gives as a list.
template <class F, class... Args>
Result<std::vector<std::string>> texts_from(F&& function, Args... args) {
    auto list = Value::make(function, args...);
    if (!list) return list.error();
    return StateType<std::vector<std::string>>::get(list->handle(), "");
}

inline Change change_of(const rnet_change* change) {
    rnet_change_info info{};
    info.struct_size = sizeof info;
    rnet_change_read(change, &info, nullptr);
    Change made;
    made.key = info.key;
    if (info.entry) made.entry = entry_of(info.entry);
    if (info.expired != 0) made.expired = info.expired == 1;
    made.revision = info.revision;
    if (info.skipped >= 0) made.skipped = static_cast<std::uint64_t>(info.skipped);
    made.initial = info.initial;
    return made;
}

/// The change, if any, that a function of the C API gives.
template <class F, class... Args>
Result<std::optional<Change>> change_from(F&& function, Args... args) {
    auto found = result_of<rnet_change*>(function, args...);
    if (!found) return found.error();
    if (!*found) return std::optional<Change>();
    const Handle<rnet_change, rnet_change_free> change(*found);
    return std::optional<Change>(change_of(change.get()));
}

inline ParamInfo param_info_of(const rnet_param_info& info) {
    ParamInfo made;
    made.key = info.key;
    made.node = info.node;
    made.name = info.name;
    made.kind = info.kind;
    made.value = optional_value(info.value);
    made.default_value = optional_value(info.default_value);
    made.min = optional_value(info.min);
    made.max = optional_value(info.max);
    made.choices.assign(info.choices, info.choices + info.choice_count);
    made.unit = info.unit;
    made.description = info.description;
    made.read_only = info.read_only;
    made.durable = info.durable;
    made.is_default = info.is_default;
    if (info.problem) made.problem = info.problem;
    if (info.refused_value) made.refused = RefusedValue{info.refused_value, info.refused_why,
        info.refused_by};
    return made;
}

/// The parameters that a function of the C API gives.
template <class F, class... Args>
Result<std::vector<ParamInfo>> params_from(F&& function, Args... args) {
    auto found = result_of<rnet_param_list*>(function, args...);
    if (!found) return found.error();
    const Handle<rnet_param_list, rnet_param_list_free> list(*found);
    std::vector<ParamInfo> params;
    for (std::size_t i = 0; i < rnet_param_list_count(list.get()); ++i) {
        rnet_param_info info{};
        info.struct_size = sizeof info;
        auto read = success_of(rnet_param_list_get, list.get(), i, &info);
        if (!read) return read.error();
        params.push_back(param_info_of(info));
    }
    return Result<std::vector<ParamInfo>>(std::move(params));
}

/// What receives changes: `Derived::take(timeout_ns)` returns the next one, or none if the timeout is 0.
template <class Derived>
class ChangeSource {
public:
    /// Waits for the next change.
    Change recv() { return recv(std::nothrow).value(); }
    Result<Change> recv(std::nothrow_t) { return wait(RNET_FOREVER); }
    /// As recv(), for at most `limit`; then fails with Code::timeout.
    template <class Rep, class Period>
    Change recv_for(std::chrono::duration<Rep, Period> limit) {
        return recv_for(limit, std::nothrow).value();
    }
    template <class Rep, class Period>
    Result<Change> recv_for(std::chrono::duration<Rep, Period> limit, std::nothrow_t) {
        // A limit of 0 is a wait that is over, and not the absence of a change.
        const std::int64_t limit_ns = ns(limit);
        return wait(limit_ns == 0 ? 1 : limit_ns);
    }
    /// The next change, if available.
    std::optional<Change> try_recv() { return try_recv(std::nothrow).value(); }
    Result<std::optional<Change>> try_recv(std::nothrow_t) { return self().take(0); }

    /// The end of the changes: the source was closed.
    struct End {};
    /// Receives in a loop.
    class Iterator {
    public:
        using iterator_category = std::input_iterator_tag;
        using value_type = Change;
        using difference_type = std::ptrdiff_t;
        using pointer = Change*;
        using reference = Change&;

        explicit Iterator(ChangeSource* source) : source_(source) { ++*this; }
        Change& operator*() noexcept { return *current_; }
        Change* operator->() noexcept { return &*current_; }
        Iterator& operator++() {
            auto next = source_->recv(std::nothrow);
            if (next) {
                current_ = std::move(*next);
            } else if (next.error().code() == Code::closed) {
                source_ = nullptr;
            } else {
                raise(next.error());
            }
            return *this;
        }
        void operator++(int) { ++*this; }
        friend bool operator==(const Iterator& at, End) noexcept { return at.source_ == nullptr; }
        friend bool operator!=(const Iterator& at, End) noexcept { return at.source_ != nullptr; }

    private:
        ChangeSource* source_;
        std::optional<Change> current_;
    };
    /// Waits for the first change.
    Iterator begin() { return Iterator(this); }
    End end() const noexcept { return {}; }

private:
    friend Derived;
    ChangeSource() = default;

    Derived& self() { return static_cast<Derived&>(*this); }
    Result<Change> wait(std::int64_t timeout_ns) {
        auto change = self().take(timeout_ns);
        if (!change) return change.error();
        return Result<Change>(std::move(**change));
    }
};

}  // namespace detail
}  // namespace rnet
