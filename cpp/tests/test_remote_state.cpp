// The state of another host: two domains that two processes rnet-link connect. RNET_LINK is the path of
// rnet-link; default: target/debug/rnet-link.

#include "state_check.hpp"

#include <rnet/param.hpp>
#include <rnet/remote_state.hpp>

#include <arpa/inet.h>
#include <csignal>
#include <fstream>
#include <future>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <thread>

using namespace std::chrono_literals;
using rnet::Code;
using rnet::State;

namespace {

int free_port() {
    const int listener = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t len = sizeof address;
    CHECK(bind(listener, reinterpret_cast<sockaddr*>(&address), len) == 0);
    CHECK(getsockname(listener, reinterpret_cast<sockaddr*>(&address), &len) == 0);
    close(listener);
    return ntohs(address.sin_port);
}

/// A host: a domain with a node, and the process that links it.
class Host {
public:
    Host(const char* name, const std::string& network) {
        std::ofstream file(folder_.path("robot.toml"));
        file << "[network]\nhost = \"" << name << "\"\n" << network << "\n";
        file.close();
        const char* given = std::getenv("RNET_LINK");
        program_ = std::filesystem::absolute(given ? given : "target/debug/rnet-link");
        CHECK(std::filesystem::exists(program_) && "build rnet-link, or set RNET_LINK");
        start();
    }
    Host(const Host&) = delete;
    ~Host() { stop(); }
    void start() {
        link_ = fork();
        if (link_ == 0) {
            setenv("RNET_DIR", folder_.path("shm").c_str(), 1);
            setenv("RNET_DOMAIN", "test", 1);
            unsetenv("RNET_CONFIG");
            if (chdir(folder_.path().c_str()) == 0) execl(program_.c_str(), "rnet-link", "run", nullptr);
            _exit(127);
        }
        CHECK(link_ > 0);
    }
    void stop() {
        if (link_ <= 0) return;
        kill(link_, SIGKILL);
        waitpid(link_, nullptr, 0);
        link_ = 0;
    }

private:
    check::Folder folder_;
    std::string program_;
    pid_t link_ = 0;

public:
    check::TestNode node{"node", folder_.path()};
};

/// Two hosts, the state of the first, and the same as the second sees it.
struct Hosts {
    int port = free_port();
    Host one{"one", "listen = [\"tcp/127.0.0.1:" + std::to_string(port) + "\"]"};
    Host two{"two", "connect = [\"tcp/127.0.0.1:" + std::to_string(port) + "\"]"};
    State home = State::open(one.node);
    rnet::RemoteState remote = rnet::RemoteState::open(two.node, "one");

    Hosts() {
        home.set("/arm/mode", "idle");
        const auto until = std::chrono::steady_clock::now() + 30s;
        while (!remote.entry("/arm/mode", std::nothrow)) CHECK(std::chrono::steady_clock::now() < until);
    }
};

}  // namespace

TEST("another host's keys are read and written there") {
    Hosts hosts;
    const auto& remote = hosts.remote;
    const auto mode = remote.get<std::string>("/arm/mode");
    CHECK(mode.value == "idle" && !mode.is_stale && mode.age >= 0ns && mode.age < 10s);
    CHECK(!remote.get("/absent").value);
    CHECK_CODE(state_type, remote.get<double>("/arm/mode"));
    const std::uint64_t revision = remote.set("/arm/mode", "moving");
    CHECK(hosts.home.get<std::string>("/arm/mode") == "moving" &&
          hosts.home.entry("/arm/mode")->revision == revision);
    CHECK(remote.entry("/arm/mode").value->revision == revision);
    CHECK_CODE(state_type, remote.set("/arm/mode", 1));
    CHECK_CODE(conflict, remote.compare_and_set("/arm/mode", 0, "idle"));
    CHECK(remote.compare_and_set("/arm/mode", revision, "idle") > revision);
    rnet::PutOptions options;
    options.ttl = 1h;
    remote.set("/arm/lease", 1, options);
    CHECK(hosts.home.entry("/arm/lease")->ttl_left && remote.list("/arm").size() == 2);
    CHECK(remote.erase("/arm/lease") && !remote.erase("/arm/lease") && !hosts.home.get("/arm/lease"));

    rnet::ParamOptions<double> gain;
    gain.default_value = 1.0;
    gain.max = 2.0;
    const auto param = rnet::Param<double>::declare(hosts.one.node, "gain", gain);
    CHECK(remote.params().size() == 1 && remote.params()[0].max == rnet::Value(2.0));
    CHECK_CODE(bad_value, remote.set("/params/node/gain", 3.0));
    // While the host is away, reads return what was read last, and writes fail.
    CHECK(remote.get<std::string>("/arm/mode").value == "idle");
    hosts.one.stop();
    std::optional<rnet::WithAge<std::optional<std::string>>> old;
    while (!old || !old->is_stale) old = remote.get<std::string>("/arm/mode");
    CHECK(old->value == "idle");
    CHECK_CODE(home_away, remote.set("/arm/mode", "moving"));
}

TEST("a replica follows the keys under a prefix") {
    Hosts hosts;
    rnet::Replica replica = hosts.remote.mirror("/arm");
    CHECK(replica.get<std::string>("/arm/mode").value == "idle" && replica.list().size() == 1 &&
          !replica.is_stale());
    CHECK(replica.age() < 10s);
    CHECK_CODE(bad_value, replica.get("/base/mode"));
    rnet::Change change = replica.recv_for(10s);
    CHECK(change.key == "/arm/mode" && change.initial && change.get<std::string>() == "idle");
    CHECK(!replica.try_recv());
    CHECK_CODE(timeout, replica.recv_for(30ms));
    hosts.home.set("/arm/mode", "moving");
    CHECK(replica.recv().get<std::string>() == "moving");
    // Closing ends a wait, and a loop.
    std::future<int> loop = std::async(std::launch::async, [&] {
        int count = 0;
        for (const rnet::Change& each : replica) count += each.key.size() > 0;
        return count;
    });
    hosts.home.set("/arm/mode", "idle");
    while (replica.get<std::string>("/arm/mode").value != "idle") std::this_thread::yield();
    hosts.two.node.close();
    CHECK(loop.wait_for(10s) == std::future_status::ready);
    CHECK_CODE(closed, replica.list());
    CHECK_CODE(closed, replica.age());
    CHECK_CODE(closed, hosts.remote.get("/arm/mode"));
}

RNET_TEST_MAIN()
