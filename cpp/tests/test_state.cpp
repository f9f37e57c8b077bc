#include "state_check.hpp"

#include <rnet/remote_state.hpp>
#include <rnet/state.hpp>

#include <atomic>
#include <cmath>
#include <csignal>
#include <future>
#include <memory>
#include <poll.h>
#include <sys/wait.h>
#include <thread>

using namespace std::chrono_literals;
using check::Domain;
using check::failure;
using rnet::Code;
using rnet::PutOptions;
using rnet::State;
using rnet::Value;
using rnet::ValueKind;

namespace {

/// A plain message, described by hand.
struct Pose {
    double x, y;
};
/// As Pose, but the fields are at other places.
struct Moved {
    double y, x;
};

template <class T>
rnet::Result<rnet::Type> plain(const char* name, const char* first, const char* second) {
    const rnet_field fields[] = {{first, 0, RNET_F64, 0, {}, nullptr}, {second, 8, RNET_F64, 0, {}, nullptr}};
    return rnet::Type::plain(name, sizeof(T), alignof(T), fields);
}

/// Makes changes visible to the test from another thread.
template <class T>
struct Shelf {
    std::promise<T> promise;
    std::future<T> future = promise.get_future();
    T get() {
        CHECK(future.wait_for(10s) == std::future_status::ready);
        return future.get();
    }
};

}  // namespace

template <class T>
struct PlainMessage {
    static constexpr bool in_place = false;
    static rnet::Bytes encode(const T& message, std::vector<std::uint8_t>&) {
        return {reinterpret_cast<const std::uint8_t*>(&message), sizeof(T)};
    }
    static rnet::Result<void> decode(rnet::Bytes bytes, T& message) {
        if (bytes.size() != sizeof(T)) return rnet::Error(Code::malformed);
        std::memcpy(&message, bytes.data(), sizeof(T));
        return {};
    }
};
template <>
struct rnet::Message<Pose> : PlainMessage<Pose> {
    static rnet::Result<rnet::Type> type() { return plain<Pose>("Pose", "x", "y"); }
};
template <>
struct rnet::Message<Moved> : PlainMessage<Moved> {
    static rnet::Result<rnet::Type> type() { return plain<Moved>("Pose", "y", "x"); }
};

TEST("each type is read as it was written") {
    Domain domain;
    const State state = State::open(domain.node);
    state.set("/b", true);
    state.set("/i", 42);
    state.set("/f", 1.5);
    state.set("/s", "idle");
    state.set("/y", std::vector<std::uint8_t>{1, 0, 255});
    state.set("/j", Value::json(R"({"kp": 12.5})"));
    state.set("/l", std::vector<double>{1.0, 2.0});
    state.set("/nested", Value::list({1, "two", Value::list({3.0})}));
    state.set("/set", std::set<std::string>{"b", "a"});
    state.set("/m", Pose{1.0, -2.0});
    CHECK(state.get<bool>("/b") == true);
    CHECK(state.get<std::int64_t>("/i") == 42 && state.get<std::uint8_t>("/i") == 42);
    CHECK(state.get<double>("/f") == 1.5 && state.get<float>("/f") == 1.5f);
    CHECK(state.get<std::string>("/s") == "idle" && state.get<std::string>("s") == "idle");
    CHECK((state.get<std::vector<std::uint8_t>>("/y") == std::vector<std::uint8_t>{1, 0, 255}));
    const std::optional<Value> json = state.get("/j");
    CHECK(json && json->kind() == ValueKind::json && json->text() == R"({"kp": 12.5})");
    CHECK((state.get<std::vector<double>>("/l") == std::vector<double>{1.0, 2.0}));
    const std::optional<Value> nested = state.get("/nested");
    CHECK(nested && nested->size() == 3 && (*nested)[1] == Value("two") &&
          (*nested)[2][0].as<double>() == 3.0);
    CHECK(!(*nested)[3].handle() && (*nested)[3].kind() == ValueKind::none);
    CHECK((state.get<std::set<std::string>>("/set") == std::set<std::string>{"a", "b"}));
    const auto pose = state.get<Pose>("/m");
    CHECK(pose && pose->x == 1.0 && pose->y == -2.0);
    CHECK(state.get("/m")->type_name() == "Pose");
    CHECK(!state.get("/absent") && !state.get<double>("/absent") && !state.get<Pose>("/absent"));
    CHECK(std::isnan(*[&] {
        state.set("/f", std::nan(""));
        return state.get<double>("/f");
    }()));
}

TEST("a value of another type is an error that names both") {
    Domain domain;
    const State state = State::open(domain.node);
    state.set("/i", 300);
    state.set("/m", Pose{});
    CHECK_CODE(state_type, state.set("/i", 1.5));
    CHECK_CODE(state_type, state.get<double>("/i"));
    CHECK_CODE(state_type, state.get<std::string>("/i"));
    CHECK_CODE(bad_value, state.get<std::int8_t>("/i"));
    CHECK_CODE(state_type, state.get<Moved>("/m"));
    CHECK_CODE(state_type, state.get<Pose>("/i"));
    const auto text = state.get<std::string>("/i", std::nothrow);
    CHECK(!text && std::string(text.error().what()).find("/i holds") != std::string::npos);
    const auto number = state.get<double>("/i", std::nothrow);
    CHECK(!number && number.error().code() == Code::state_type);
    PutOptions options;
    options.change_type = true;
    state.set("/i", 1.5, options);
    CHECK(state.get<double>("/i") == 1.5);
    CHECK(!Value(3).as<double>() && Value(3).as<int>() == 3 && Value(3) != Value(3.0));
    CHECK_CODE(bad_value, Value::json("{"));
    CHECK_CODE(invalid_argument, Value("\xff"));
    CHECK_CODE(invalid_argument, state.set("/none", Value()));
    CHECK_CODE(bad_name, state.set("/a b\n", 1));
    CHECK_CODE(bad_value, state.set("/big", UINT64_MAX));
}

TEST("a condition that does not hold is a conflict") {
    Domain domain;
    const State state = State::open(domain.node);
    PutOptions absent;
    absent.if_absent = true;
    const std::uint64_t revision = state.set("/lock", "me", absent);
    CHECK_CODE(conflict, state.set("/lock", "you", absent));
    CHECK_CODE(conflict, state.compare_and_set("/lock", 0, "you"));
    CHECK_CODE(conflict, state.erase("/lock", revision + 1));
    const std::uint64_t second = state.compare_and_set("/lock", revision, "still me");
    CHECK(second > revision && state.revision() >= second && state.entry("/lock")->revision == second);
    CHECK(state.erase("/lock", second) && !state.erase("/lock") && !state.entry("/lock"));
    absent.if_revision = 3;
    CHECK_CODE(invalid_argument, state.set("/lock", "me", absent));
}

TEST("an entry has the metadata of its write") {
    Domain domain;
    const State state = State::open(domain.node);
    PutOptions options;
    options.ttl = 1h;
    options.last_will = Value(false);
    state.set("/alive", false);
    state.set("/alive", true, options);
    const auto entry = state.entry("/alive");
    CHECK(entry && entry->key == "/alive" && entry->get<bool>() && entry->version == 2);
    CHECK(entry->owner == "/arm" && entry->written_unix_ns > 1'600'000'000'000'000'000 && !entry->durable);
    CHECK(entry->ttl_left && *entry->ttl_left > 59min && *entry->ttl_left <= 1h &&
          entry->expires_boot_ns > 0);
    CHECK(entry->last_will == Value(false) && !entry->last_will_delete);
    PutOptions deletes;
    deletes.last_will_delete = true;
    state.set("/alive", true, deletes);
    CHECK(state.entry("/alive")->last_will_delete && !state.entry("/alive")->ttl_left);
    deletes.last_will = Value(1);
    CHECK_CODE(invalid_argument, state.set("/alive", true, deletes));
    options.ttl = -1s;
    CHECK_CODE(invalid_argument, state.set("/alive", true, options));
}

TEST("a key is deleted when its time to live is over") {
    Domain domain;
    const State state = State::open(domain.node);
    rnet::Watch watch = state.watch("/lease");
    PutOptions options;
    options.ttl = 1ms;
    state.set("/lease", 1, options);
    rnet::Change change = watch.recv_for(10s);
    if (change.entry) change = watch.recv_for(10s);
    CHECK(change.key == "/lease" && !change.entry && !state.get("/lease"));
}

TEST("prefixes, keys and snapshots") {
    Domain domain;
    const State state = State::open(domain.node);
    state.set("/arm/a", 1);
    state.set("/arm/b", 2);
    state.set("/base", 3);
    CHECK((state.keys("/arm") == std::vector<std::string>{"/arm/a", "/arm/b"}) && state.keys().size() == 3);
    const rnet::Snapshot snapshot = state.snapshot("/arm");
    CHECK(snapshot.revision == state.revision() && snapshot.entries.size() == 2);
    CHECK(snapshot.entries[1].key == "/arm/b" && snapshot.entries[1].get<int>() == 2);
    CHECK(state.list("/none").empty() && state.disk_reports().empty());
}

TEST("changes relative to the current value") {
    Domain domain;
    const State state = State::open(domain.node);
    CHECK(state.add("/n") == 1 && state.add("/n", 5) == 6 && state.add("/x", 0.5) == 0.5 &&
          state.add("/x", 1.0) == 1.5);
    CHECK_CODE(state_type, state.add("/n", 0.5));
    for (std::size_t i = 0; i < 5; ++i) CHECK(state.push("/log", i, 3) == (i < 3 ? i + 1 : 3));
    CHECK((state.get<std::vector<int>>("/log") == std::vector<int>{2, 3, 4}));
    CHECK(state.set_add("/set", "a") && !state.set_add("/set", "a") && state.contains("/set", "a"));
    CHECK(state.set_remove("/set", "a") && !state.set_remove("/set", "a") && !state.contains("/set", "a"));
    CHECK_CODE(state_type, state.contains("/log", 1));
    PutOptions options;
    options.ttl = 1h;
    options.last_will_delete = true;
    state.set("/word", "a", options);
    const auto doubled = state.update<std::string>("/word", [](auto word) { return *word + *word; });
    CHECK(doubled == "aa" && state.get<std::string>("/word") == "aa");
    CHECK(state.entry("/word")->ttl_left && state.entry("/word")->last_will_delete);
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
        threads.emplace_back([&] {
            const auto next = [](std::optional<int> sum) { return sum.value_or(0) + 1; };
            for (int i = 0; i < 50; ++i) state.update<int>("/sum", next);
        });
    }
    for (auto& thread : threads) thread.join();
    CHECK(state.get<int>("/sum") == 200);
    // An exception of the function leaves the key as it is, and the state usable within and after it.
    CHECK_CODE(io, state.update<int>("/sum", [&](auto) -> int {
        state.set("/other", 1);
        throw rnet::Error(Code::io);
    }));
    CHECK(state.get<int>("/sum") == 200 && state.get<int>("/other") == 1);
}

TEST("a transaction makes all changes or none") {
    Domain domain;
    const State state = State::open(domain.node);
    state.set("/a", 10);
    rnet::Transaction open = state.transaction();
    open.set("/a", *open.get<int>("/a") - 3);
    open.set("/b", 3);
    CHECK(open.get<int>("/b") == 3 && !open.get("/c") && !state.get("/b"));
    const std::uint64_t revision = open.commit();
    CHECK(state.entry("/a")->revision == revision && state.entry("/b")->revision == revision);
    CHECK_CODE(closed, open.commit());
    CHECK_CODE(closed, open.get("/a"));

    rnet::Transaction late = state.transaction();
    late.set("/b", *late.get<int>("/a"));
    late.erase("/a");
    state.set("/a", 8);
    CHECK_CODE(conflict, late.commit());
    CHECK(state.get<int>("/a") == 8 && state.get<int>("/b") == 3);

    int tries = 0;
    state.transact([&](rnet::Transaction& t) {
        t.set("/b", *t.get<int>("/a") + 1);
        if (++tries == 1) state.set("/a", 20);
    });
    CHECK(tries == 2 && state.get<int>("/b") == 21);
    CHECK_CODE(io, state.transact([&](rnet::Transaction& t) {
        t.erase("/b");
        throw rnet::Error(Code::io);
    }));
    CHECK(state.get<int>("/b") == 21);
    rnet::Transaction options = state.transaction();
    PutOptions put;
    put.if_absent = true;
    CHECK_CODE(invalid_argument, options.set("/b", 1, put));
    put.if_absent = false;
    put.ttl = 1h;
    options.set("/b", 1, put);
    options.commit();
    CHECK(state.entry("/b")->ttl_left);
    const auto fail = [](rnet::Transaction&) { return rnet::Result<void>(rnet::Error(Code::io)); };
    const auto failed = state.transact(fail, std::nothrow);
    CHECK(!failed && failed.error().code() == Code::io);
}

TEST("a durable key survives all nodes") {
    check::Folder folder;
    {
        check::TestNode node("arm", folder.path());
        const State state = State::open(node);
        PutOptions options;
        options.durable = true;
        state.set("/zero", 0.013, options);
        state.set("/zero", 0.014);
        state.set("/volatile", 1);
        CHECK(state.entry("/zero")->durable && !state.entry("/volatile")->durable);
    }
    std::filesystem::remove_all(folder.path("shm"));
    check::TestNode node("arm", folder.path());
    const State state = State::open(node);
    CHECK(state.get<double>("/zero") == 0.014 && !state.get("/volatile"));
    PutOptions options;
    options.durable = false;
    state.set("/zero", 0.015, options);
    CHECK(!state.entry("/zero")->durable);
}

TEST("a watch reports the values, then each change") {
    Domain domain;
    const State state = State::open(domain.node);
    state.set("/arm/mode", "idle");
    rnet::Watch watch = state.watch("/arm");
    rnet::Change change = watch.recv();
    CHECK(change.key == "/arm/mode" && change.initial && change.get<std::string>() == "idle");
    CHECK(!watch.try_recv());
    CHECK_CODE(timeout, watch.recv_for(1ms));
    CHECK_CODE(timeout, watch.recv_for(0ms));
    state.set("/base/mode", "idle");
    const std::uint64_t revision = state.set("/arm/mode", "moving");
    change = watch.recv_for(10s);
    CHECK(!change.initial && change.revision == revision && change.skipped == std::uint64_t{0});
    state.erase("/arm/mode");
    change = watch.recv_for(10s);
    CHECK(!change.entry && change.expired == false && !change.get<std::string>());
}

TEST("closing ends a wait, and a loop") {
    Domain domain;
    const State state = State::open(domain.node);
    state.set("/k", 1);
    rnet::Watch watch = state.watch("/k");
    std::atomic<int> received{0};
    std::thread reader([&] {
        for (const rnet::Change& change : watch) received += change.get<int>().value_or(0);
    });
    while (received == 0) std::this_thread::yield();
    watch.close();
    reader.join();
    CHECK(received == 1);
    CHECK_CODE(closed, watch.recv());
    CHECK_CODE(closed, watch.fd());

    rnet::Watch other = state.watch("/k");
    other.recv();
    std::future<Code> waiting = std::async(std::launch::async, [&] {
        Code code = Code::wrong_thread;
        while (code == Code::wrong_thread) code = check::code_of([&] { other.recv(); });
        return code;
    });
    // A second thread is refused while the first one waits.
    Code second = Code::timeout;
    while (second == Code::timeout) second = check::code_of([&] { other.recv_for(1ms); });
    CHECK(second == Code::wrong_thread);
    domain.node.close();
    CHECK(waiting.get() == Code::closed);
}

TEST("a watch has a file descriptor") {
    Domain domain;
    const State state = State::open(domain.node);
    rnet::Watch watch = state.watch("/k");
    pollfd waits{watch.fd(), POLLIN, 0};
    CHECK(watch.fd() == waits.fd);
    while (watch.try_recv()) {}
    state.set("/k", 1);
    std::optional<rnet::Change> change;
    while (!(change = watch.try_recv())) CHECK(poll(&waits, 1, 10000) == 1);
    CHECK(change->get<int>() == 1);
    CHECK_CODE(timeout, watch.recv_for(1ms));
    rnet::Guard guard = watch.on([](const rnet::Change&) {});
    CHECK_CODE(closed, watch.try_recv());
}

TEST("a callback gets each change until its guard ends") {
    Domain domain;
    const State state = State::open(domain.node);
    Shelf<int> shelf;
    auto token = std::make_shared<int>(0);
    const std::weak_ptr<int> alive = token;
    std::atomic<int> calls{0};
    rnet::Guard guard = state.watch("/k").on([&, token = std::move(token)](const rnet::Change& change) {
        ++calls;
        // The callback may use the state, and its exceptions are counted.
        state.set("/seen", *change.get<int>());
        if (change.get<int>() == 1) throw std::runtime_error("the first");
        shelf.promise.set_value(*change.get<int>());
    });
    state.set("/k", 1);
    rnet::Watch seen = state.watch("/seen");
    CHECK(seen.recv_for(10s).get<int>() == 1);
    state.set("/k", 2);
    CHECK(shelf.get() == 2 && calls == 2 && !alive.expired());
    guard.close();
    CHECK(alive.expired());
    state.set("/k", 3);
    CHECK(calls == 2);

    Shelf<int> urgent;
    const auto tell = [&](const rnet::Change& change) { urgent.promise.set_value(*change.get<int>()); };
    rnet::Guard detached = state.watch("/k").on(tell, true);
    detached.detach();
    CHECK(urgent.get() == 3);
    domain.node.close();
}

TEST("the context of a callback is freed if it is not registered") {
    Domain domain;
    const State state = State::open(domain.node);
    rnet::Watch watch = state.watch("/k");
    watch.close();
    auto token = std::make_shared<int>(0);
    const std::weak_ptr<int> alive = token;
    CHECK_CODE(closed, watch.on([token = std::move(token)](const rnet::Change&) {}));
    CHECK(alive.expired());
    // Also if there is nowhere to put the guard: otherwise nobody could end the callback.
    int freed = 0;
    rnet::Watch other = state.watch("/k");
    const auto ignore = [](const rnet_change*, void*) {};
    const auto count = [](void* context) { ++*static_cast<int*>(context); };
    CHECK(failure(rnet_watch_on, other.handle(), false, ignore, nullptr, &freed, count, nullptr).first ==
          RNET_INVALID_ARGUMENT);
    CHECK(freed == 1);
}

TEST("a cell is one key") {
    Domain domain;
    const State state = State::open(domain.node);
    const rnet::Cell<Pose> pose = state.cell<Pose>("/pose");
    CHECK(!pose.get() && pose.set({1.0, 2.0}) > 0 && pose.get()->y == 2.0 && pose.key() == "/pose");
    pose.update([](std::optional<Pose> held) { return Pose{held->x + 1.0, held->y}; });
    CHECK(pose.get()->x == 2.0 && pose.state().get("/pose")->kind() == ValueKind::message);
}

TEST("objects of a closed node are closed, and are freed in any order") {
    Domain domain;
    auto state = std::make_unique<State>(State::open(domain.node));
    auto watch = std::make_unique<rnet::Watch>(state->watch());
    auto transaction = std::make_unique<rnet::Transaction>(state->transaction());
    auto remote = std::make_unique<rnet::RemoteState>(rnet::RemoteState::open(domain.node, "lab"));
    domain.node.close();
    CHECK_CODE(closed, state->get("/k"));
    CHECK_CODE(closed, state->set("/k", 1));
    CHECK_CODE(closed, state->watch());
    CHECK_CODE(closed, watch->recv());
    CHECK_CODE(closed, transaction->commit());
    CHECK_CODE(closed, remote->entry("/k"));
    CHECK_CODE(closed, State::open(domain.node));
    state.reset();
    remote.reset();
    transaction.reset();
    watch.reset();
}

TEST("a freed node lives on in its state, and that in its watch") {
    check::Folder folder;
    auto node = std::make_unique<check::TestNode>("arm", folder.path());
    auto state = std::make_unique<State>(State::open(*node));
    node.reset();
    state->set("/k", 1);
    rnet::Watch watch = state->watch("/k");
    state.reset();
    CHECK(watch.recv_for(10s).get<int>() == 1);
}

TEST("null and wrong sizes are errors") {
    Domain domain;
    const State state = State::open(domain.node);
    rnet_value* value = nullptr;
    CHECK(failure(rnet_node_state, nullptr, nullptr).second == "node is null");
    CHECK(failure(rnet_state_get, nullptr, "/k", &value).second == "state is null");
    CHECK(failure(rnet_state_get, state.handle(), nullptr, &value).second == "key is null");
    state.set("/k", 1);
    CHECK(failure(rnet_state_get, state.handle(), "/k", nullptr).first == RNET_INVALID_ARGUMENT);
    CHECK(failure(rnet_state_entry, state.handle(), "/k", nullptr, nullptr, nullptr).first == RNET_INVALID_ARGUMENT);
    CHECK(failure(rnet_state_set, state.handle(), "/k", nullptr, nullptr, nullptr).second == "value is null");
    CHECK(rnet_state_get(nullptr, nullptr, nullptr, nullptr) == RNET_INVALID_ARGUMENT);
    CHECK(failure(rnet_watch_recv, nullptr, 0, nullptr).second == "watch is null");
    CHECK(failure(rnet_transaction_commit, nullptr, nullptr).second == "transaction is null");
    CHECK(failure(rnet_state_recv, nullptr, 0, nullptr).second == "state is null");
    rnet_value_free(nullptr);
    rnet_entry_free(nullptr);
    rnet_entry_list_free(nullptr);
    rnet_change_free(nullptr);
    rnet_transaction_free(nullptr);
    rnet_watch_free(nullptr);
    rnet_watch_close(nullptr);
    rnet_state_close(nullptr);
    rnet_state_free(nullptr);
    CHECK(rnet_value_read(nullptr).kind == RNET_VALUE_NONE && rnet_value_copy(nullptr) == nullptr);
    // The state of a domain is neither that of another host nor a copy of it.
    CHECK(failure(rnet_state_mirror, state.handle(), "/k", nullptr).first == RNET_INVALID_ARGUMENT);
    CHECK(failure(rnet_state_age, state.handle(), nullptr, nullptr).first == RNET_INVALID_ARGUMENT);
    CHECK(failure(rnet_state_recv, state.handle(), 0, nullptr).first == RNET_INVALID_ARGUMENT);
    for (int kind : {RNET_VALUE_NONE + 0, RNET_VALUE_UNREADABLE + 0, 77}) {
        rnet_value_data data{};
        data.kind = kind;
        CHECK(failure(rnet_value_new, data, &value).second.find("of which no value") != std::string::npos);
    }
    CHECK(rnet_value_item(nullptr, 0) == nullptr && rnet_entry_list_get(nullptr, 0) == nullptr);

    const Value one(1);
    rnet_put_options options{};
    auto set = [&](auto error) {
        return rnet_state_set(state.handle(), "/k", one.handle(), &options, nullptr, error);
    };
    CHECK(failure(set).second.find("RNET_PUT_OPTIONS_INIT") != std::string::npos);
    // An older header has fewer options, a newer one more, of which none that is set may be unknown.
    options.struct_size = offsetof(rnet_put_options, ttl_ns);
    options.ttl_ns = -1;
    CHECK(failure(set).first == RNET_OK);
    struct {
        rnet_put_options known;
        std::uint64_t unknown;
    } newer{};
    newer.known.struct_size = sizeof newer;
    auto set_newer = [&](auto e) {
        return rnet_state_set(state.handle(), "/k", one.handle(), &newer.known, nullptr, e);
    };
    CHECK(failure(set_newer).first == RNET_OK);
    newer.unknown = 1;
    CHECK(failure(set_newer).first == RNET_INVALID_ARGUMENT);
    rnet_entry* entry = nullptr;
    std::int64_t age_ns = 1;
    bool is_stale = true;
    CHECK(rnet_state_entry(state.handle(), "/k", &entry, &age_ns, &is_stale, nullptr) == RNET_OK);
    CHECK(age_ns == 0 && !is_stale);
    rnet_entry_info info{};
    CHECK(failure(rnet_entry_read, entry, &info).first == RNET_INVALID_ARGUMENT);
    info.struct_size = offsetof(rnet_entry_info, version);
    info.version = 77;
    CHECK(rnet_entry_read(entry, &info, nullptr) == RNET_OK && info.revision > 0 && info.version == 77);
    rnet_entry_free(entry);
}

TEST("the last will of a killed process takes effect") {
    check::Folder folder;
    check::TestNode node("panel", folder.path());
    const State state = State::open(node);
    rnet::Watch watch = state.watch("/arm/alive");
    const std::string path = folder.path();
    const pid_t child = fork();
    if (child == 0) {
        execl("/proc/self/exe", "test_state", "--child", path.c_str(), nullptr);
        _exit(127);
    }
    CHECK(child > 0);
    CHECK(watch.recv_for(10s).get<bool>() == true);
    CHECK(state.entry("/arm/alive")->owner == "/child");
    kill(child, SIGKILL);
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status));
    CHECK(watch.recv_for(10s).get<bool>() == false);
    while (state.get("/arm/job")) std::this_thread::sleep_for(1ms);  // sleep: polling interval
}

TEST("objects of the parent are closed in a forked child") {
    Domain domain;
    const State state = State::open(domain.node);
    rnet::Watch watch = state.watch("/k");
    const pid_t child = fork();
    if (child == 0) {
        const bool refused = state.get("/k", std::nothrow).error().code() == Code::closed &&
                             watch.recv(std::nothrow).error().code() == Code::closed &&
                             state.set("/k", 7, std::nothrow).error().code() == Code::closed;
        { rnet::Watch freed = std::move(watch); }
        _exit(refused ? 0 : 1);
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    state.set("/k", 1);
    CHECK(watch.recv_for(10s).get<int>() == 1);
}

/// A process that waits to be killed.
int run_child(const std::string& folder) {
    check::TestNode node("child", folder);
    const State state = State::open(node);
    PutOptions deletes;
    deletes.last_will_delete = true;
    state.set("/arm/job", 1, deletes);
    PutOptions options;
    options.last_will = Value(false);
    state.set("/arm/alive", true, options);
    for (;;) pause();
}

int main(int argc, char** argv) {
    if (argc == 3 && std::string(argv[1]) == "--child") return run_child(argv[2]);
    return check::run(argc, argv);
}
