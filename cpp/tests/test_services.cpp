#include "calls.hpp"

#include <rnet/service.hpp>

#include <cmath>
#include <sys/wait.h>

using namespace rnet;
using Raw = Client<Bytes, Bytes>;

namespace {

struct Negative : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// Waits until a call has begun, and then until it is cancelled.
struct Stuck {
    std::shared_ptr<Gate> begun = std::make_shared<Gate>();
    std::shared_ptr<std::atomic<int>> ended = std::make_shared<std::atomic<int>>(0);
    void operator()(Bytes, CallContext& context) const {
        begun->open();
        CHECK(becomes([&] { return context.is_cancelled(); }));
        ++*ended;
    }
};

}  // namespace

TEST("a typed call returns the reply of the handler") {
    TestNode node("roots");
    auto service = serve<Number, Number>(node, "/root",
                                         [](const Number& n) { return Number{std::sqrt(n.x)}; });
    auto client = Client<Number, Number>::open(node, "/root");
    CHECK(client.call(Number{16})->x == 4);
    CHECK((*client.call(Number{81})).x == 9);
    CHECK(service.name() == "/root" && client.name() == "/root");
    CHECK(client.server_count() == 1);
    CHECK(becomes([&] { return service.stats().calls == 2 && service.stats().running == 0; }));
    CHECK(client.stats().calls == 2 && client.stats().open == 0);
}

TEST("decoded messages, and a handler with a context") {
    TestNode node("texts");
    auto service = serve<Text, Text>(node, "/name", [](const Text& text, CallContext& context) {
        return Text{text.text + " " + std::string(context.caller())};
    });
    auto client = Client<Text, Text>::open(node, "/name");
    CHECK(client.call(Text{"from"})->text == "from /texts");
    auto malformed = client.call(Text{"malformed"}, std::nothrow);
    CHECK(!malformed && malformed.error().code() == Code::call_failed);
    CHECK(malformed.error().kind() == "malformed");
}

TEST("a handler without a result replies with no bytes") {
    TestNode node("raw");
    auto service = serve<Bytes, Bytes>(node, "/note", [](Bytes) {});
    auto reply = Raw::open(node, "/note").call(bytes_of("x"));
    CHECK(reply.bytes().empty());
}

TEST("an exception of the handler fails the call with its class and text") {
    TestNode node("roots");
    auto service = serve<Number, Number>(node, "/root", [](const Number& n) -> Number {
        if (n.x < 0) throw Negative("negative number");
        if (n.x > 100) throw 7;
        return n;
    });
    auto client = Client<Number, Number>::open(node, "/root");
    auto failed = client.call(Number{-1}, std::nothrow);
    CHECK(!failed && failed.error().code() == Code::call_failed);
    CHECK(failed.error().kind().find("Negative") != std::string_view::npos);
    CHECK(failed.error().detail() == "negative number");
    CHECK(failed.error().node() == "/roots" && failed.error().topic() == "/root");
    auto other = client.call(Number{101}, std::nothrow);
    CHECK(!other && other.error().kind() == "exception");
    CHECK(client.call(Number{5})->x == 5);
    CHECK(becomes([&] { return service.stats().failed == 2; }));
}

TEST("a handler that does not answer fails the call") {
    TestNode node("silent");
    rnet_service* service = nullptr;
    auto handler = [](rnet_request*, void*) {};
    CHECK(rnet_service_new(node.handle(), "/silent", nullptr, handler, nullptr, nullptr, &service, nullptr) ==
          RNET_OK);
    auto failed = Raw::open(node, "/silent").call(bytes_of("x"), std::nothrow);
    CHECK(!failed && failed.error().code() == Code::call_failed && failed.error().kind() == "not_answered");
    rnet_service_free(service);
}

TEST("answering twice, or in the wrong way, is refused") {
    TestNode node("c");
    rnet_service* service = nullptr;
    auto handler = [](rnet_request* request, void* context) {
        auto& codes = *static_cast<std::vector<rnet_code>*>(context);
        auto data = reinterpret_cast<const std::uint8_t*>("ab");
        codes.push_back(rnet_request_answer(request, nullptr, 2, nullptr));
        codes.push_back(rnet_request_answer(request, data, 2, nullptr));
        codes.push_back(rnet_request_answer(request, data, 1, nullptr));
        codes.push_back(rnet_request_send(request, data, 1, nullptr));
        codes.push_back(rnet_request_end(request, nullptr));
        codes.push_back(rnet_request_fail(nullptr, nullptr, nullptr, nullptr));
    };
    std::vector<rnet_code> codes;
    CHECK(rnet_service_new(node.handle(), "/twice", nullptr, handler, &codes, nullptr, &service, nullptr) ==
          RNET_OK);
    CHECK(Raw::open(node, "/twice").call(bytes_of("x")).text() == "ab");
    rnet_service_free(service);
    CHECK(codes.size() == 6 && codes[1] == RNET_OK);
    for (int at : {0, 2, 3, 4, 5}) CHECK(codes[at] == RNET_INVALID_ARGUMENT);
}

TEST("a stream gives all replies, and one call takes the first") {
    TestNode node("count");
    auto service = serve_stream<Bytes, Bytes>(node, "/count", [](Bytes request, Responder<Bytes>& replies) {
        for (int i = 0; i < std::stoi(std::string(text_of(request))); ++i) replies.send(std::to_string(i));
    });
    auto client = Raw::open(node, "/count");
    auto stream = client.stream(bytes_of("3"));
    std::string all;
    while (auto reply = stream.next_for(LIMIT)) all += text_of(**reply);
    CHECK(all == "012");
    CHECK(!stream.next());
    CHECK(client.call(bytes_of("3")).text() == "0");
    auto none = client.stream(bytes_of("0"));
    CHECK(!none.next_for(LIMIT));
    CHECK(code_of([&] { client.call(bytes_of("0")); }) == Code::call_failed);
}

TEST("cancelling a stream ends its handler") {
    TestNode node("endless");
    std::atomic<bool> ended{false};
    auto service = serve_stream<Bytes, Bytes>(node, "/endless", [&](Bytes, Responder<Bytes>& replies) {
        while (replies.send("more", std::nothrow)) std::this_thread::sleep_for(1ms);  // sleep: pace of the replies
        ended = replies.cancel_reason() == CancelReason::caller;
    });
    auto client = Raw::open(node, "/endless");
    {
        auto stream = client.stream(bytes_of("x"));
        CHECK(stream.next_for(LIMIT));
        stream.cancel();
        CHECK(code_of([&] { while (stream.next_for(LIMIT)) {} }) == Code::cancelled);
    }
    CHECK(becomes([&] { return ended.load(); }));
}

TEST("a started call is awaited, polled, and cancelled when it is freed") {
    TestNode node("later");
    Gate gate;
    auto service = serve<Bytes, Bytes>(node, "/later", [&](Bytes request) {
        CHECK(gate.wait());
        return std::string(text_of(request));
    });
    auto client = Raw::open(node, "/later");
    auto pending = client.start(bytes_of("a"));
    CHECK(code_of([&] { pending.wait_for(1ms); }) == Code::timeout);
    CHECK(code_of([&] { pending.wait_for(0ns); }) == Code::timeout);
    gate.open();
    CHECK(pending.wait_for(LIMIT).text() == "a");
    CHECK(code_of([&] { pending.wait(); }) == Code::closed);

    Stuck stuck;
    auto slow = serve<Bytes, Bytes>(node, "/stuck", stuck);
    {
        auto freed = Raw::open(node, "/stuck").start(bytes_of("x"));
        CHECK(becomes([&] {
            CHECK(code_of([&] { freed.wait_for(1ms); }) == Code::timeout);
            return stuck.begun->is_open();
        }));
    }
    CHECK(becomes([&] { return *stuck.ended == 1; }));
}

TEST("the caller's time limit ends the call, and cancels its handler") {
    TestNode node("slow");
    Stuck stuck;
    auto service = serve<Bytes, Bytes>(node, "/slow", stuck);
    CallOptions soon;
    soon.timeout = 50ms;
    auto client = Raw::open(node, "/slow");
    CHECK(code_of([&] { client.call(bytes_of("x"), soon); }) == Code::timeout);
    CHECK(becomes([&] { return *stuck.ended == 1; }));
    ClientOptions options;
    options.timeout = 10ms;
    CHECK(code_of([&] { Raw::open(node, "/nobody", options).call(bytes_of("x")); }) == Code::timeout);
}

TEST("calls with a key, several at once, and the backlog") {
    TestNode node("busy");
    Gate gate;
    std::atomic<int> running{0};
    ServiceOptions options;
    options.at_once = 2;
    options.backlog = 0;
    auto service = serve<Bytes, Bytes>(node, "/busy", [&](Bytes request) {
        ++running;
        CHECK(gate.wait());
        return std::string(text_of(request));
    }, options);
    auto client = Raw::open(node, "/busy");
    auto one = client.start(bytes_of("1")), two = client.start(bytes_of("2"));
    CHECK(becomes([&] {
        (void)one.wait_for(0ns, std::nothrow);
        return running == 2;
    }));
    CHECK(code_of([&] { client.call(bytes_of("3")); }) == Code::refused);
    gate.open();
    CHECK(one.wait_for(LIMIT).text() == "1" && two.wait_for(LIMIT).text() == "2");
    CallOptions keyed;
    keyed.key = "robot";
    CHECK(client.call(bytes_of("4"), keyed).text() == "4");
    ServiceOptions bad;
    bad.at_once = 1000;
    CHECK(code_of([&] { serve<Bytes, Bytes>(node, "/bad", [](Bytes) {}, bad); }) == Code::bad_value);
}

TEST("a server that closes during a call ends it") {
    TestNode node("closing");
    Stuck stuck;
    auto service = std::make_unique<Service>(serve<Bytes, Bytes>(node, "/closing", stuck));
    auto client = Raw::open(node, "/closing");
    auto call = std::async(std::launch::async, [&] { return code_of([&] { client.call(bytes_of("x")); }); });
    CHECK(stuck.begun->wait());
    service->close();
    CHECK(call.wait_for(LIMIT) == std::future_status::ready);
    auto code = call.get();
    CHECK(code == Code::server_lost || code == Code::cancelled);
    CHECK(*stuck.ended == 1);
    service.reset();
}

TEST("closing the node ends the calls of other threads") {
    TestNode server("server");
    Stuck stuck;
    ServiceOptions options;
    options.at_once = 8;
    auto service = serve<Bytes, Bytes>(server, "/stuck", stuck, options);
    TestNode node("caller", server.domain());
    auto client = Raw::open(node, "/stuck");
    auto pending = client.start(bytes_of("x"));
    auto run = [](auto&& call) { return std::async(std::launch::async, [=] { return code_of(call); }); };
    std::future<Code> calls[] = {
        run([&] { client.call(bytes_of("1")); }),
        run([&] { client.call(bytes_of("2")); }),
        run([&] { pending.wait(); }),
        run([&] { rnet::call<Bytes, Bytes>(node, "/stuck", bytes_of("3")); }),
        run([&] { Raw::open(node, "/nobody").call(bytes_of("4")); }),
    };
    CHECK(becomes([&] { return service.stats().running == 4; }));
    node.close();
    for (auto& call : calls) {
        CHECK(call.wait_for(LIMIT) == std::future_status::ready);
        CHECK(call.get() == Code::closed);
    }
    CHECK(becomes([&] { return *stuck.ended == 4; }));
    CHECK(code_of([&] { client.call(bytes_of("5")); }) == Code::closed);
    CHECK(code_of([&] { client.stats(); }) == Code::closed);
    CHECK(code_of([&] { Raw::open(node, "/stuck"); }) == Code::closed);
}

TEST("closing a client ends its calls; freeing it does not") {
    TestNode node("node");
    Gate gate;
    auto service = serve<Bytes, Bytes>(node, "/gate", [&](Bytes) { CHECK(gate.wait()); });
    auto client = std::make_unique<Raw>(Raw::open(node, "/gate"));
    auto freed = std::make_unique<Raw>(Raw::open(node, "/gate"));
    auto kept = freed->start(bytes_of("1"));
    auto closed = client->start(bytes_of("2"));
    auto call = std::async(std::launch::async, [&] { return code_of([&] { closed.wait(); }); });
    CHECK(code_of([&] { kept.wait_for(5ms); }) == Code::timeout);
    freed.reset();
    client->close();
    CHECK(call.wait_for(LIMIT) == std::future_status::ready && call.get() == Code::closed);
    CHECK(code_of([&] { client->start(bytes_of("x")); }) == Code::closed);
    gate.open();
    CHECK(kept.wait_for(LIMIT).text().empty());
}

TEST("a handler may call another service, and closing its node ends it") {
    TestNode node("chain");
    Stuck stuck;
    TestNode other("other", node.domain());
    auto inner = serve<Bytes, Bytes>(other, "/inner", stuck);
    auto client = std::make_shared<Raw>(Raw::open(node, "/inner"));
    std::atomic<int> code{0};
    auto outer = serve<Bytes, Bytes>(node, "/outer", [&code, client](Bytes request) {
        code = static_cast<int>(code_of([&] { client->call(request); }));
    });
    auto call = Raw::open(other, "/outer").start(bytes_of("x"));
    CHECK(becomes([&] {
        (void)call.wait_for(1ms, std::nothrow);
        return stuck.begun->is_open();
    }));
    node.close();
    CHECK(code == static_cast<int>(Code::closed));
}

TEST("a call of the node caches its client") {
    TestNode node("once");
    auto service = serve<Number, Text>(node, "/text",
                                       [](const Number& n) { return Text{std::to_string(int(n.x))}; });
    for (int i = 0; i < 3; ++i) CHECK((rnet::call<Number, Text>(node, "/text", Number{7})->text == "7"));
    ClientOptions options;
    options.timeout = 10ms;
    CHECK(code_of([&] { rnet::call<Bytes, Bytes>(node, "/none", bytes_of("x"), options); }) == Code::timeout);
    auto other = rnet::call<Bytes, Text>(node, "/text", bytes_of("12345678"), ClientOptions{}, std::nothrow);
    CHECK(!other && other.error().code() == Code::incompatible_type);
}

TEST("the context of a handler is freed once, after the last call") {
    TestNode node("context");
    auto alive = std::make_shared<int>(0);
    auto handler = [alive](Bytes) {};
    CHECK(alive.use_count() == 2);
    {
        auto service = serve<Bytes, Bytes>(node, "/x", handler);
        CHECK(alive.use_count() == 3);
        CHECK(code_of([&] { serve<Bytes, Bytes>(node, "not a name", handler); }) == Code::bad_name);
        CHECK(alive.use_count() == 3);
    }
    CHECK(alive.use_count() == 2);
}

TEST("a handler may close its own service") {
    TestNode node("self");
    std::unique_ptr<Service> service;
    Gate opened;
    service = std::make_unique<Service>(serve<Bytes, Bytes>(node, "/self", [&](Bytes) {
        CHECK(opened.wait());
        service->close();
        return std::string("closed");
    }));
    opened.open();
    auto reply = Raw::open(node, "/self").call(bytes_of("x"), std::nothrow);
    CHECK(reply ? text_of(reply->bytes()) == "closed" : reply.error().code() == Code::server_lost);
}

TEST("null handles and wrong option structs are errors") {
    TestNode node("null");
    rnet_client* client = nullptr;
    rnet_service* service = nullptr;
    rnet_sample* sample = nullptr;
    rnet_pending* pending = nullptr;
    rnet_error* error = nullptr;
    auto handler = [](rnet_request*, void*) {};
    int freed = 0;
    auto free = [](void* context) { ++*static_cast<int*>(context); };
    CHECK(rnet_client_new(nullptr, "/x", nullptr, &client, &error) == RNET_INVALID_ARGUMENT);
    CHECK(std::string(rnet_error_text(error)).find("null") != std::string::npos);
    CHECK(rnet_error_kind(error) == nullptr && rnet_error_detail(error) == nullptr);
    rnet_error_free(error);
    CHECK(rnet_client_new(node.handle(), nullptr, nullptr, &client, nullptr) == RNET_INVALID_ARGUMENT);
    CHECK(rnet_client_new(node.handle(), "/x", nullptr, nullptr, nullptr) == RNET_INVALID_ARGUMENT);
    CHECK(rnet_client_call(nullptr, nullptr, 0, nullptr, &sample, nullptr) == RNET_INVALID_ARGUMENT);
    CHECK(rnet_client_start(nullptr, nullptr, 0, nullptr, &pending, nullptr) == RNET_INVALID_ARGUMENT);
    CHECK(rnet_pending_next(nullptr, 0, &sample, nullptr) == RNET_INVALID_ARGUMENT);
    CHECK(rnet_service_new(nullptr, "/x", nullptr, handler, &freed, free, &service, nullptr) ==
          RNET_INVALID_ARGUMENT);
    CHECK(rnet_service_new(node.handle(), "/x", nullptr, nullptr, &freed, free, &service, nullptr) ==
          RNET_INVALID_ARGUMENT);
    CHECK(freed == 2);
    rnet_client_options options{};
    CHECK(rnet_client_new(node.handle(), "/x", &options, &client, nullptr) == RNET_INVALID_ARGUMENT);
    rnet_service_options wrong{};
    wrong.struct_size = 3;
    CHECK(rnet_service_new(node.handle(), "/x", &wrong, handler, &freed, free, &service, nullptr) ==
          RNET_INVALID_ARGUMENT);
    options.struct_size = sizeof options;
    options.timeout_ns = -5;
    CHECK(rnet_client_new(node.handle(), "/x", &options, &client, nullptr) == RNET_INVALID_ARGUMENT);
    options.timeout_ns = 0;
    CHECK(rnet_client_new(node.handle(), "/x", &options, &client, nullptr) == RNET_OK);
    rnet_client_stats stats{};
    CHECK(rnet_client_get_stats(client, &stats, nullptr) == RNET_INVALID_ARGUMENT);
    stats.struct_size = sizeof(std::size_t) + sizeof(std::uint64_t);
    stats.open = 77;
    CHECK(rnet_client_get_stats(client, &stats, nullptr) == RNET_OK && stats.open == 77);
    CHECK(rnet_client_call(client, nullptr, 4, nullptr, &sample, nullptr) == RNET_INVALID_ARGUMENT);
    rnet_client_free(client);
    rnet_client_close(nullptr);
    rnet_client_free(nullptr);
    rnet_pending_cancel(nullptr);
    rnet_pending_free(nullptr);
    rnet_service_close(nullptr);
    rnet_service_free(nullptr);
    CHECK(rnet_request_data(nullptr).len == 0 && !rnet_request_is_cancelled(nullptr));
    CHECK(rnet_request_cancel_reason(nullptr) == RNET_CANCEL_NONE);
    CHECK(std::string(rnet_request_caller(nullptr)).empty() &&
          std::string(rnet_client_name(nullptr)).empty());
}

TEST("objects are freed in any order") {
    auto node = std::make_unique<TestNode>("order");
    auto service = std::make_unique<Service>(serve<Bytes, Bytes>(*node, "/echo",
                                                                 [](Bytes request) { return request; }));
    auto client = std::make_unique<Raw>(Raw::open(*node, "/echo"));
    node.reset();
    auto pending = client->start(bytes_of("x"));
    auto reply = pending.wait_for(LIMIT);
    client.reset();
    service.reset();
    CHECK(text_of(reply.bytes()) == "x");
}

TEST("in a forked child the objects of the parent are closed") {
    TestNode node("parent");
    auto service = serve<Bytes, Bytes>(node, "/echo", [](Bytes request) { return request; });
    auto client = Raw::open(node, "/echo");
    auto pending = client.start(bytes_of("x"));
    pid_t child = fork();
    if (child == 0) {
        bool closed = code_of([&] { client.call(bytes_of("y")); }) == Code::closed;
        closed &= code_of([&] { pending.wait(); }) == Code::closed;
        closed &= code_of([&] { service.stats(); }) == Code::closed;
        service.close();
        client.close();
        _exit(closed ? 0 : 1);
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK(pending.wait_for(LIMIT).text() == "x");
    CHECK(client.call(bytes_of("z")).text() == "z");
}

RNET_TEST_MAIN()
