// What reads of the state return, and the options of writes.
#pragma once

#include <rnet/detail/receiver.hpp>
#include <rnet/value.hpp>

#include <chrono>
#include <cstdint>
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

/// What is known of a state, with its age.
template <class T>
struct WithAge {
    T value;
    /// Time since the value was known to be current at its home.
    std::chrono::nanoseconds age{0};
    /// Whether the home is away, so that the value may have changed there.
    bool is_stale = false;
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
        auto options = detail::initialised<rnet_put_options>();
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
    auto info = initialised<rnet_entry_info>();
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

/// The value of a key, if any, that a function of the C API gives.
template <class T, class F, class Object>
Result<std::optional<T>> value_from(F&& function, Object* object, const CText& key) {
    auto found = Value::make(function, object, key);
    if (!found) return found.error();
    if (!found->handle()) return std::optional<T>();
    auto value = StateType<T>::get(found->handle(), key);
    if (!value) return value.error();
    return std::optional<T>(std::move(*value));
}

/// A key with a time to live of 0 would be deleted at once.
inline Result<void> check_ttl(const PutOptions& options) {
    if (!options.ttl || options.ttl->count() != 0) return {};
    return Error(Code::bad_value, "time to live: it must be longer than 0; to remove the key, erase it");
}

/// Sets a key, and returns the revision of the change.
template <class T>
Result<std::uint64_t> set_key(const rnet_state* state, std::string_view key, const T& value,
                              const PutOptions& options) {
    auto given = StateType<std::decay_t<const T&>>::put(value);
    if (!given) return given.error();
    if (auto valid = check_ttl(options); !valid) return valid.error();
    const auto c = options.c();
    return result_of<std::uint64_t>(rnet_state_set, state, CText(key), given->handle(), &c);
}

/// The entry of a key, if any, and its age.
inline Result<WithAge<std::optional<Entry>>> aged_entry(const rnet_state* state, std::string_view key) {
    std::int64_t age_ns = 0;
    bool is_stale = false;
    auto found = result_of<rnet_entry*>([&](auto out, auto error) {
        return rnet_state_entry(state, CText(key), out, &age_ns, &is_stale, error);
    });
    if (!found) return found.error();
    const Handle<rnet_entry, rnet_entry_free> entry(*found);
    WithAge<std::optional<Entry>> aged{std::nullopt, std::chrono::nanoseconds(age_ns), is_stale};
    if (entry) aged.value = entry_of(entry.get());
    return Result<WithAge<std::optional<Entry>>>(std::move(aged));
}

/// The entries that a function of the C API gives.
template <class F, class... Args>
Result<Snapshot> entries_from(F&& function, Args&&... args) {
    auto found = result_of<rnet_entry_list*>(function, args...);
    if (!found) return found.error();
    const Handle<rnet_entry_list, rnet_entry_list_free> list(*found);
    Snapshot snapshot;
    snapshot.revision = rnet_entry_list_revision(list.get());
    for (std::size_t at = 0; const rnet_entry* entry = rnet_entry_list_get(list.get(), at); ++at) {
        snapshot.entries.push_back(entry_of(entry));
    }
    return Result<Snapshot>(std::move(snapshot));
}

/// The entries under a prefix, without the revision of the state.
inline Result<std::vector<Entry>> list_of(const rnet_state* state, std::string_view prefix) {
    auto found = entries_from(rnet_state_list, state, CText(prefix));
    if (!found) return found.error();
    return std::move(found->entries);
}

/// The texts that a function of the C API gives as a list.
template <class F, class... Args>
Result<std::vector<std::string>> texts_from(F&& function, Args&&... args) {
    auto list = Value::make(function, args...);
    if (!list) return list.error();
    return StateType<std::vector<std::string>>::get(list->handle(), "");
}

inline Change change_of(const rnet_change* change) {
    auto info = initialised<rnet_change_info>();
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
Result<std::optional<Change>> change_from(F&& function, Args&&... args) {
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
Result<std::vector<ParamInfo>> params_from(F&& function, Args&&... args) {
    auto found = result_of<rnet_param_list*>(function, args...);
    if (!found) return found.error();
    const Handle<rnet_param_list, rnet_param_list_free> list(*found);
    std::vector<ParamInfo> params;
    for (std::size_t at = 0; const rnet_param_info* info = rnet_param_list_get(list.get(), at); ++at) {
        params.push_back(param_info_of(*info));
    }
    return Result<std::vector<ParamInfo>>(std::move(params));
}

}  // namespace detail
}  // namespace rnet
