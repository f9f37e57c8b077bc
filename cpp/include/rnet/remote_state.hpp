// The state of another host.
#pragma once

#include <rnet/state.hpp>

namespace rnet {
namespace detail {

/// Reads keys of another host, with their age.
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
        return aged_entry(static_cast<const Derived&>(*this).handle(), key);
    }

private:
    friend Derived;
    AgedReader() = default;
};

}  // namespace detail

/// The keys under a prefix of another host, mirrored locally: reading them does not use the network. Receives
/// first the current values, then each change. While the host is away the keys keep their values, and age()
/// grows.
class Replica : public detail::AgedReader<Replica>, public detail::Receiver<Replica, Change> {
public:
    /// Takes over an object of the C API.
    explicit Replica(rnet_state* handle) : handle_(handle) {}

    /// All entries, sorted by key.
    std::vector<Entry> list() const { return list(std::nothrow).value(); }
    Result<std::vector<Entry>> list(std::nothrow_t) const { return detail::list_of(handle(), ""); }
    /// Time since the keys were known to be current: less than 1 s while the host is connected.
    std::chrono::nanoseconds age() const {
        return std::chrono::nanoseconds(detail::result_of<std::int64_t>([&](auto out, auto error) {
            return rnet_state_age(handle(), out, nullptr, error);
        }).value());
    }
    /// Whether the host is away.
    bool is_stale() const { return detail::result_of<bool>(rnet_state_age, handle(), nullptr).value(); }
    /// Ends it: its calls fail with Code::closed from then on. Any thread may call this, which ends a wait.
    void close() noexcept { rnet_state_close(handle()); }
    rnet_state* handle() const noexcept { return handle_.get(); }

private:
    friend class detail::Receiver<Replica, Change>;
    Result<std::optional<Change>> take(std::int64_t timeout_ns) {
        return detail::change_from(rnet_state_recv, handle(), timeout_ns);
    }

    detail::Handle<rnet_state, rnet_state_free> handle_;
};

/// The state of another host, the home of its keys. Copies are cheap, and share the object; any thread may
/// use it.
///
/// A read asks that host; while it is away, the last value that was read is returned, with its age. A write
/// is sent once, and returns when it is in effect there; while the host is away it fails with
/// Code::home_away, and may have arrived. Its options have no last will and no expires_boot_ns.
class RemoteState : public detail::AgedReader<RemoteState>, public detail::StateHandle {
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
        return detail::made_by<RemoteState>(rnet_node_state_of, node.handle(), detail::CText(host),
                                            timeout.count());
    }
    /// Takes over an object of the C API.
    explicit RemoteState(rnet_state* handle) : StateHandle(handle) {}

    /// Mirrors the keys under a prefix there. Returns when it has the current values.
    Replica mirror(std::string_view prefix = "") const { return mirror(prefix, std::nothrow).value(); }
    Result<Replica> mirror(std::string_view prefix, std::nothrow_t) const {
        return detail::made_by<Replica>(rnet_state_mirror, handle(), detail::CText(prefix));
    }
};

}  // namespace rnet
