// The state of a domain: keys that hold values and can be watched.
//
//     rnet::State state = rnet::State::open(node);
//     state.set("/arm/mode", "idle");
//     std::optional<double> gain = state.get<double>("/arm/gain");
//     for (const rnet::Change& change : state.watch("/arm")) std::cout << change.key << '\n';
#pragma once

#include <rnet/entry.hpp>
#include <rnet/guard.hpp>

#include <memory>

namespace rnet {

/// Reports the values of the keys under a prefix, then each change, in order. A slow reader gets the newest
/// value of each key. One thread at a time may use it; a second one gets Code::wrong_thread. Made by
/// State::watch().
class Watch : public detail::Receiver<Watch, Change> {
public:
    /// Takes over an object of the C API.
    explicit Watch(rnet_watch* handle) noexcept : handle_(handle) {}

    /// A file descriptor that is readable when there may be a change, for event loops: until try_recv() has
    /// returned none. It is closed when the watch is destroyed.
    int fd() { return fd(std::nothrow).value(); }
    Result<int> fd(std::nothrow_t) { return detail::result_of<int>(rnet_watch_fd, handle()); }
    /// Calls `callback(const Change&)` for each change, on the node's thread for bulk messages, or for urgent
    /// ones, until the guard is destroyed. Exceptions and errors are counted and logged. Ends the other use
    /// of the watch.
    template <class F>
    Guard on(F&& callback, bool urgent = false) {
        return on(std::forward<F>(callback), urgent, std::nothrow).value();
    }
    template <class F>
    Result<Guard> on(F&& callback, bool urgent, std::nothrow_t) {
        using Function = std::decay_t<F>;
        const auto run = [](const rnet_change* change, void* context) {
            detail::guarded([&] { (*static_cast<Function*>(context))(detail::change_of(change)); });
        };
        const auto fail = [](const rnet_error* error, void*) {
            rnet_report_callback_error(rnet_error_text(error));
        };
        void* context = detail::context_of(std::forward<F>(callback));
        return detail::made_by<Guard>(rnet_watch_on, handle(), urgent, run, fail, context,
                                      detail::free_context<Function>);
    }
    /// Ends the watch: its calls fail with Code::closed from then on. Any thread may call this, which ends a
    /// wait.
    void close() noexcept { rnet_watch_close(handle()); }

    rnet_watch* handle() const noexcept { return handle_.get(); }

private:
    friend class detail::Receiver<Watch, Change>;
    Result<std::optional<Change>> take(std::int64_t timeout_ns) {
        return detail::change_from(rnet_watch_recv, handle(), timeout_ns);
    }

    detail::Handle<rnet_watch, rnet_watch_free> handle_;
};

/// Reads and writes of several keys, of which all take effect at the commit, or none. One thread at a time
/// may use it. Made by State::transaction(); State::transact() repeats one after a conflict.
class Transaction {
public:
    /// Takes over an object of the C API.
    explicit Transaction(rnet_transaction* handle) noexcept : handle_(handle) {}

    /// The value of a key: the one that this transaction has set, otherwise the current one; none if it is
    /// absent.
    template <class T = Value>
    std::optional<T> get(std::string_view key) { return get<T>(key, std::nothrow).value(); }
    template <class T = Value>
    Result<std::optional<T>> get(std::string_view key, std::nothrow_t) {
        return detail::value_from<T>(rnet_transaction_get, handle(), detail::CText(key));
    }
    /// Sets a key at the commit. The options have no if_absent and if_revision here: read the key in the
    /// transaction.
    template <class T>
    void set(std::string_view key, const T& value, const PutOptions& options = {}) {
        set(key, value, options, std::nothrow).value();
    }
    template <class T>
    Result<void> set(std::string_view key, const T& value, const PutOptions& options, std::nothrow_t) {
        auto given = StateType<std::decay_t<const T&>>::put(value);
        if (!given) return given.error();
        if (auto valid = detail::check_ttl(options); !valid) return valid.error();
        const auto c = options.c();
        return detail::success_of(rnet_transaction_set, handle(), detail::CText(key), given->handle(), &c);
    }
    /// Deletes a key at the commit.
    void erase(std::string_view key) { erase(key, std::nothrow).value(); }
    Result<void> erase(std::string_view key, std::nothrow_t) {
        return detail::success_of(rnet_transaction_delete, handle(), detail::CText(key));
    }
    /// Makes all changes in one step, ends the transaction, and returns the revision of the changes. Fails
    /// with Code::conflict, and changes nothing, if another writer has changed a key that was read here.
    std::uint64_t commit() { return commit(std::nothrow).value(); }
    Result<std::uint64_t> commit(std::nothrow_t) {
        return detail::result_of<std::uint64_t>(rnet_transaction_commit, handle());
    }

    rnet_transaction* handle() const noexcept { return handle_.get(); }

private:
    detail::Handle<rnet_transaction, rnet_transaction_free> handle_;
};

template <class T>
class Cell;

namespace detail {

/// What the state of a domain and that of another host have in common. Copies share the object.
class StateHandle {
public:
    /// The entries under a prefix, sorted by key, at one moment.
    std::vector<Entry> list(std::string_view prefix = "") const { return list(prefix, std::nothrow).value(); }
    Result<std::vector<Entry>> list(std::string_view prefix, std::nothrow_t) const {
        return list_of(handle(), prefix);
    }
    /// Sets a key, and returns the revision of the change.
    template <class T>
    std::uint64_t set(std::string_view key, const T& value, const PutOptions& options = {}) const {
        return set(key, value, options, std::nothrow).value();
    }
    template <class T>
    Result<std::uint64_t> set(std::string_view key, const T& value, std::nothrow_t) const {
        return set(key, value, PutOptions(), std::nothrow);
    }
    template <class T>
    Result<std::uint64_t> set(std::string_view key, const T& value, const PutOptions& options,
        std::nothrow_t) const {
        return set_key(handle(), key, value, options);
    }
    /// Sets a key that is at this revision (0: absent); fails with Code::conflict if it is at another one.
    template <class T>
    std::uint64_t compare_and_set(std::string_view key, std::uint64_t revision, const T& value) const {
        return compare_and_set(key, revision, value, std::nothrow).value();
    }
    template <class T>
    Result<std::uint64_t> compare_and_set(std::string_view key, std::uint64_t revision, const T& value,
                                          std::nothrow_t) const {
        PutOptions options;
        options.if_revision = revision;
        return set(key, value, options, std::nothrow);
    }
    /// Deletes a key; false if it was absent. With a revision, only at that one; otherwise Code::conflict.
    bool erase(std::string_view key, std::uint64_t if_revision = 0) const {
        return erase(key, if_revision, std::nothrow).value();
    }
    Result<bool> erase(std::string_view key, std::uint64_t if_revision, std::nothrow_t) const {
        return result_of<bool>(rnet_state_delete, handle(), CText(key), if_revision);
    }
    /// The parameters of the nodes, sorted by key.
    std::vector<ParamInfo> params() const { return params(std::nothrow).value(); }
    Result<std::vector<ParamInfo>> params(std::nothrow_t) const {
        return params_from(rnet_state_params, handle());
    }
    rnet_state* handle() const noexcept { return handle_.get(); }

protected:
    explicit StateHandle(rnet_state* handle) : handle_(handle, rnet_state_free) {}

private:
    std::shared_ptr<rnet_state> handle_;
};

}  // namespace detail

/// The state of a node's domain. Copies are cheap, and share the object; any thread may use it. A type T of
/// values is one of StateType<T>.
class State : public detail::StateHandle {
    template <class N>
    using Sum = std::conditional_t<std::is_floating_point_v<N>, double, std::int64_t>;

public:
    /// The state of a node.
    template <class Node>
    static State open(const Node& node) { return open(node, std::nothrow).value(); }
    template <class Node>
    static Result<State> open(const Node& node, std::nothrow_t) {
        auto made = detail::result_of<rnet_state*>(rnet_node_state, node.handle());
        if (!made) return made.error();
        return State(*made, rnet_node_name(node.handle()));
    }

    /// The value of a key; none if it is absent. Fails with Code::state_type if it has another type.
    template <class T = Value>
    std::optional<T> get(std::string_view key) const { return get<T>(key, std::nothrow).value(); }
    template <class T = Value>
    Result<std::optional<T>> get(std::string_view key, std::nothrow_t) const {
        const detail::CText name(key);
        if constexpr (detail::is_scalar<T>) {
            auto data = detail::result_of<rnet_value_data>(rnet_state_read, handle(), name);
            if (data && data->kind == RNET_VALUE_NONE) return std::optional<T>();
            if (data) {
                if (auto value = detail::scalar_of<T>(*data)) return std::optional<T>(*value);
            }
        }
        return detail::value_from<T>(rnet_state_get, handle(), name);
    }
    /// The value of a key with its metadata; none if it is absent.
    std::optional<Entry> entry(std::string_view key) const { return entry(key, std::nothrow).value(); }
    Result<std::optional<Entry>> entry(std::string_view key, std::nothrow_t) const {
        auto aged = detail::aged_entry(handle(), key);
        if (!aged) return aged.error();
        return std::move(aged->value);
    }
    /// As list(), with the revision of that moment.
    Snapshot snapshot(std::string_view prefix = "") const { return snapshot(prefix, std::nothrow).value(); }
    Result<Snapshot> snapshot(std::string_view prefix, std::nothrow_t) const {
        return detail::entries_from(rnet_state_list, handle(), detail::CText(prefix));
    }
    /// The keys under a prefix, in order.
    std::vector<std::string> keys(std::string_view prefix = "") const {
        return keys(prefix, std::nothrow).value();
    }
    Result<std::vector<std::string>> keys(std::string_view prefix, std::nothrow_t) const {
        return detail::texts_from(rnet_state_keys, handle(), detail::CText(prefix));
    }
    /// Revision of the newest change of any key.
    std::uint64_t revision() const { return revision(std::nothrow).value(); }
    Result<std::uint64_t> revision(std::nothrow_t) const {
        return detail::result_of<std::uint64_t>(rnet_state_revision, handle());
    }
    /// Problems of the state on disk since the domain started, oldest first.
    std::vector<std::string> disk_reports() const { return disk_reports(std::nothrow).value(); }
    Result<std::vector<std::string>> disk_reports(std::nothrow_t) const {
        return detail::texts_from(rnet_state_disk_reports, handle());
    }

    /// Sets a key to `change(std::optional<T>)` of its value, and returns the new value. Calls `change` again
    /// after a conflict with another writer. The expiry of the key, and a last will of this node, are kept.
    template <class T, class F>
    T update(std::string_view key, F&& change) const {
        return update<T>(key, std::forward<F>(change), std::nothrow).value();
    }
    template <class T, class F>
    Result<T> update(std::string_view key, F&& change, std::nothrow_t) const {
        return repeat([&]() -> Result<T> {
            auto found = entry(key, std::nothrow);
            if (!found) return found.error();
            std::optional<T> present;
            PutOptions options;
            options.if_revision = 0;
            if (const std::optional<Entry>& held = *found) {
                auto value = held->template get<T>(std::nothrow);
                if (!value) return value.error();
                present = std::move(*value);
                options.if_revision = held->revision;
                options.expires_boot_ns = held->expires_boot_ns;
                if (held->owner == *node_) {
                    options.last_will = held->last_will;
                    options.last_will_delete = held->last_will_delete;
                }
            }
            T wanted = change(std::move(present));
            auto written = set(key, wanted, options, std::nothrow);
            if (!written) return written.error();
            return Result<T>(std::move(wanted));
        });
    }
    /// Adds to a number, and returns the sum. An absent key starts at 0, an integer or a float as `amount`.
    template <class N>
    Sum<N> add(std::string_view key, N amount) const { return add(key, amount, std::nothrow).value(); }
    std::int64_t add(std::string_view key) const { return add(key, std::int64_t{1}); }
    template <class N>
    Result<Sum<N>> add(std::string_view key, N amount, std::nothrow_t) const {
        const detail::CText name(key);
        if constexpr (std::is_floating_point_v<N>) {
            return detail::result_of<double>(rnet_state_add_float, handle(), name, double{amount});
        } else {
            return detail::result_of<std::int64_t>(rnet_state_add, handle(), name, std::int64_t(amount));
        }
    }
    /// Appends to a list, keeps its last `max_len` items, and returns its length. The list is the value of
    /// the key.
    std::size_t push(std::string_view key, const Value& value, std::size_t max_len) const {
        return push(key, value, max_len, std::nothrow).value();
    }
    Result<std::size_t> push(std::string_view key, const Value& value, std::size_t max_len,
        std::nothrow_t) const {
        return detail::result_of<std::size_t>(rnet_state_push, handle(), detail::CText(key),
            value.handle(), max_len);
    }
    /// Adds a member to a set; false if it was already in the set. The set is the value of the key.
    bool set_add(std::string_view key, const Value& member) const {
        return set_add(key, member, std::nothrow).value();
    }
    Result<bool> set_add(std::string_view key, const Value& member, std::nothrow_t) const {
        return member_of(rnet_state_set_add, key, member);
    }
    /// Removes a member from a set; false if it was not in the set.
    bool set_remove(std::string_view key, const Value& member) const {
        return set_remove(key, member, std::nothrow).value();
    }
    Result<bool> set_remove(std::string_view key, const Value& member, std::nothrow_t) const {
        return member_of(rnet_state_set_remove, key, member);
    }
    /// Whether a set has this member; false if the key is absent.
    bool contains(std::string_view key, const Value& member) const {
        return contains(key, member, std::nothrow).value();
    }
    Result<bool> contains(std::string_view key, const Value& member, std::nothrow_t) const {
        return member_of(rnet_state_contains, key, member);
    }

    /// Begins a transaction.
    Transaction transaction() const { return transaction(std::nothrow).value(); }
    Result<Transaction> transaction(std::nothrow_t) const {
        return detail::made_by<Transaction>(rnet_state_transaction, handle());
    }
    /// Calls `body(Transaction&)` and commits; again after a conflict with another writer. Returns the
    /// revision.
    template <class F>
    std::uint64_t transact(F&& body) const {
        const auto guarded = [&](Transaction& transaction) -> Result<void> {
#if RNET_HAS_EXCEPTIONS
            try {
                body(transaction);
            } catch (const Error& error) {
                return error;
            }
#else
            body(transaction);
#endif
            return {};
        };
        return transact(guarded, std::nothrow).value();
    }
    /// As transact(), with a body that returns Result<void>.
    template <class F>
    Result<std::uint64_t> transact(F&& body, std::nothrow_t) const {
        return repeat([&]() -> Result<std::uint64_t> {
            auto begun = transaction(std::nothrow);
            if (!begun) return begun.error();
            const Result<void> done = body(*begun);
            if (!done) return done.error();
            return begun->commit(std::nothrow);
        });
    }

    /// Watches the keys under a prefix: first their values, then each change.
    Watch watch(std::string_view prefix = "") const { return watch(prefix, std::nothrow).value(); }
    Result<Watch> watch(std::string_view prefix, std::nothrow_t) const {
        return detail::made_by<Watch>(rnet_state_watch, handle(), detail::CText(prefix));
    }
    /// One key, of one type.
    template <class T>
    Cell<T> cell(std::string_view key) const;

    /// Resets a parameter of any node to its default.
    void reset_param(std::string_view node, std::string_view name) const {
        reset_param(node, name, std::nothrow).value();
    }
    Result<void> reset_param(std::string_view node, std::string_view name, std::nothrow_t) const {
        return detail::success_of(rnet_state_reset_param, handle(), detail::CText(node), detail::CText(name));
    }

private:
    /// How often update() and transact() try.
    static constexpr int max_tries = 10000;
    using MemberFunction = rnet_code (*)(const rnet_state*, const char*, const rnet_value*, bool*,
        rnet_error**);

    State(rnet_state* handle, const char* node)
        : StateHandle(handle), node_(std::make_shared<std::string>(node)) {}

    Result<bool> member_of(MemberFunction function, std::string_view key, const Value& member) const {
        return detail::result_of<bool>(function, handle(), detail::CText(key), member.handle());
    }
    /// Calls `attempt` until it has no conflict.
    template <class F>
    static auto repeat(F&& attempt) {
        auto result = attempt();
        for (int tries = 1; tries < max_tries; ++tries) {
            if (result || result.error().code() != Code::conflict) break;
            result = attempt();
        }
        return result;
    }

    std::shared_ptr<std::string> node_;
};

/// One key of the state, of one type: for messages and for code that uses a key often. Copies are cheap.
///
///     auto gain = state.cell<double>("/arm/gain");
///     gain.set(1.5);
template <class T>
class Cell {
public:
    Cell(State state, std::string key) : state_(std::move(state)), key_(std::move(key)) {}

    /// The key.
    std::string_view key() const& noexcept { return key_; }
    std::string key() && { return std::string(key()); }
    /// The value; none if the key is absent.
    std::optional<T> get() const { return get(std::nothrow).value(); }
    Result<std::optional<T>> get(std::nothrow_t) const { return state_.get<T>(key_, std::nothrow); }
    /// Sets the key, and returns the revision of the change.
    std::uint64_t set(const T& value, const PutOptions& options = {}) const {
        return set(value, options, std::nothrow).value();
    }
    Result<std::uint64_t> set(const T& value, const PutOptions& options, std::nothrow_t) const {
        return state_.set(key_, value, options, std::nothrow);
    }
    /// Sets the key to `change(std::optional<T>)` of its value, and returns the new value.
    template <class F>
    T update(F&& change) const { return state_.update<T>(key_, std::forward<F>(change)); }
    /// The state of this cell.
    const State& state() const& noexcept { return state_; }
    State state() && noexcept { return state_; }

private:
    State state_;
    std::string key_;
};

template <class T>
Cell<T> State::cell(std::string_view key) const { return Cell<T>(*this, std::string(key)); }

}  // namespace rnet
