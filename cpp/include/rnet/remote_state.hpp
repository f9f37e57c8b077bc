// The state of another host.
#pragma once

#include <rnet/state.hpp>

namespace rnet {

/// What is known of another host's state, with its age.
template <class T>
struct WithAge {
    T value;
    /// Time since the value was known to be current at its home.
    std::chrono::nanoseconds age{0};
    /// Whether the home is away, so that the value may have changed there.
    bool is_stale = false;
};

namespace detail {

/// Reads keys with their age; `Derived::aged(key, out, age_ns, is_stale, error)` calls the C API.
template <class Derived>
class AgedReader {
public:
    /// The value of a key and its age; none if it is absent.
    template <class T = Value>
    WithAge<std::optional<T>> get(std::string_view key) const { return get<T>(key, std::nothrow).value(); }
    template <class T = Value>
    Result<WithAge<std::optional<T>>> get(std::string_view key, std::nothrow_t) const {
        auto found = entry(key, std::nothrow);
        if (!found) return found.error();
        WithAge<std::optional<T>> aged{std::nullopt, found->age, found->is_stale};
        if (found->value) {
            auto value = found->value->template get<T>(std::nothrow);
            if (!value) return value.error();
            aged.value = std::move(*value);
        }
        return Result<WithAge<std::optional<T>>>(std::move(aged));
    }
    /// As get(), with the metadata of the key.
    WithAge<std::optional<Entry>> entry(std::string_view key) const {
        return entry(key, std::nothrow).value();
    }
    Result<WithAge<std::optional<Entry>>> entry(std::string_view key, std::nothrow_t) const {
        const std::string name(key);
        std::int64_t age_ns = 0;
        bool is_stale = false;
        auto found = entry_from([&](auto out, auto error) {
            return static_cast<const Derived&>(*this).aged(name.c_str(), out, &age_ns, &is_stale, error);
        });
        if (!found) return found.error();
        return WithAge<std::optional<Entry>>{std::move(*found), std::chrono::nanoseconds(age_ns), is_stale};
    }

private:
    friend Derived;
    AgedReader() = default;
};

}  // namespace detail

/// The keys under a prefix of another host, mirrored locally: reading them does not use the network. Receives
/// first the current values, then each change. While the host is away the keys keep their values, and age()
/// grows.
class Replica : public detail::AgedReader<Replica>, public detail::ChangeSource<Replica> {
public:
    /// Takes over an object of the C API.
    explicit Replica(rnet_replica* handle) noexcept : handle_(handle) {}

    /// All entries, sorted by key.
    std::vector<Entry> list() const { return list(std::nothrow).value(); }
    Result<std::vector<Entry>> list(std::nothrow_t) const {
        auto found = detail::entries_from(rnet_replica_list, handle());
        if (!found) return found.error();
        return std::move(found->entries);
    }
    /// Time since the keys were known to be current: less than 1 s while the host is connected.
    std::chrono::nanoseconds age() const {
        return std::chrono::nanoseconds(detail::result_of<std::int64_t>([&](auto out, auto error) {
            return rnet_replica_age(handle(), out, nullptr, error);
        }).value());
    }
    /// Whether the host is away.
    bool is_stale() const { return detail::result_of<bool>(rnet_replica_age, handle(), nullptr).value(); }
    /// Ends it: its calls fail with Code::closed from then on. Any thread may call this, which ends a wait.
    void close() noexcept { rnet_replica_close(handle()); }

    rnet_replica* handle() const noexcept { return handle_.get(); }

private:
    friend class detail::AgedReader<Replica>;
    friend class detail::ChangeSource<Replica>;
    rnet_code aged(const char* key, rnet_entry** out, std::int64_t* age_ns, bool* is_stale,
        rnet_error** error) const {
        return rnet_replica_entry(handle(), key, out, age_ns, is_stale, error);
    }
    Result<std::optional<Change>> take(std::int64_t timeout_ns) {
        return detail::change_from(rnet_replica_recv, handle(), timeout_ns);
    }

    detail::Handle<rnet_replica, rnet_replica_free> handle_;
};

/// The state of another host, the home of its keys. Copies are cheap, and share the object; any thread may
/// use it.
///
/// A read asks that host; while it is away, the last value that was read is returned, with its age. A write
/// is sent once, and returns when it is in effect there; while the host is away it fails with
/// Code::home_away, and may have arrived.
class RemoteState : public detail::AgedReader<RemoteState> {
public:
    /// The state of a host, by the name that `rnet link status` shows. Each request waits for at most
    /// `timeout`; 0 is the default of 10 s.
    template <class Node>
    static RemoteState open(const Node& node, std::string_view host, std::chrono::nanoseconds timeout = {}) {
        return open(node, host, timeout, std::nothrow).value();
    }
    template <class Node>
    static Result<RemoteState> open(const Node& node, std::string_view host, std::chrono::nanoseconds timeout,
                                    std::nothrow_t) {
        auto made = detail::result_of<rnet_remote_state*>(rnet_node_state_of, node.handle(),
            detail::CText(host), timeout.count());
        if (!made) return made.error();
        return RemoteState(*made);
    }
    /// Takes over an object of the C API.
    explicit RemoteState(rnet_remote_state* handle) : handle_(handle, rnet_remote_state_free) {}

    /// The entries under a prefix there, sorted by key, at one moment.
    std::vector<Entry> list(std::string_view prefix = "") const { return list(prefix, std::nothrow).value(); }
    Result<std::vector<Entry>> list(std::string_view prefix, std::nothrow_t) const {
        auto found = detail::entries_from(rnet_remote_state_list, handle(), detail::CText(prefix));
        if (!found) return found.error();
        return std::move(found->entries);
    }
    /// The parameters of the nodes of that host, sorted by key.
    std::vector<ParamInfo> params() const { return params(std::nothrow).value(); }
    Result<std::vector<ParamInfo>> params(std::nothrow_t) const {
        return detail::params_from(rnet_remote_state_params, handle());
    }
    /// Sets a key there, and returns the revision of the change. The options have no last will and no
    /// expires_boot_ns here.
    template <class T>
    std::uint64_t set(std::string_view key, const T& value, const PutOptions& options = {}) const {
        return set(key, value, options, std::nothrow).value();
    }
    template <class T>
    Result<std::uint64_t> set(std::string_view key, const T& value, const PutOptions& options,
        std::nothrow_t) const {
        auto given = StateType<std::decay_t<const T&>>::put(value);
        if (!given) return given.error();
        const auto c = options.c();
        return detail::result_of<std::uint64_t>(rnet_remote_state_set, handle(), detail::CText(key),
            given->handle(), &c);
    }
    /// Sets a key that is at this revision of that host (0: absent); fails with Code::conflict if it is at
    /// another one.
    template <class T>
    std::uint64_t compare_and_set(std::string_view key, std::uint64_t revision, const T& value) const {
        PutOptions options;
        options.if_revision = revision;
        return set(key, value, options);
    }
    /// Deletes a key there; false if it was absent. With a revision, only at that one; otherwise
    /// Code::conflict.
    bool erase(std::string_view key, std::uint64_t if_revision = 0) const {
        return erase(key, if_revision, std::nothrow).value();
    }
    Result<bool> erase(std::string_view key, std::uint64_t if_revision, std::nothrow_t) const {
        return detail::result_of<bool>(rnet_remote_state_delete, handle(), detail::CText(key), if_revision);
    }
    /// Mirrors the keys under a prefix there. Returns when it has the current values.
    Replica mirror(std::string_view prefix = "") const { return mirror(prefix, std::nothrow).value(); }
    Result<Replica> mirror(std::string_view prefix, std::nothrow_t) const {
        auto made = detail::result_of<rnet_replica*>(rnet_remote_state_mirror, handle(),
            detail::CText(prefix));
        if (!made) return made.error();
        return Replica(*made);
    }

    rnet_remote_state* handle() const noexcept { return handle_.get(); }

private:
    friend class detail::AgedReader<RemoteState>;
    rnet_code aged(const char* key, rnet_entry** out, std::int64_t* age_ns, bool* is_stale,
        rnet_error** error) const {
        return rnet_remote_state_entry(handle(), key, out, age_ns, is_stale, error);
    }

    std::shared_ptr<rnet_remote_state> handle_;
};

}  // namespace rnet
