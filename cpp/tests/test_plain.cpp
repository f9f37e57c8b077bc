// Messages: plain structs, and classes of protoc: CXXFLAGS=-DRNET_TEST_PROTOBUF
#include "topics.hpp"

#include <array>
#include <atomic>
#include <cstring>
#include <string>
#if defined(RNET_TEST_PROTOBUF)
#include <rnet/protobuf.hpp>

#include <google/protobuf/struct.pb.h>
#include <google/protobuf/timestamp.pb.h>
#endif

namespace {

enum class Mode : std::uint8_t { idle, moving };

struct Arm {
    char name[12];
    Mode mode;
    std::int8_t i8;
    std::int16_t i16;
    Force forces[2];
    float matrix[2][3][4];
    std::array<std::uint32_t, 5> counts;
    long long i64;
    unsigned short u16;
};
RNET_PLAIN(Arm, name, mode, i8, i16, forces, matrix, counts, i64, u16)

struct LevelV2 {
    double volt;
    double ampere;
};
RNET_PLAIN_AS(LevelV2, "Level", volt, ampere)

struct Flag {
    bool on;
    bool more[3];
};
RNET_PLAIN(Flag, on, more)
struct Flags {
    std::uint32_t number;
    Flag flags[2];
};
RNET_PLAIN(Flags, number, flags)

struct Many {
    std::uint8_t a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, b0, b1, b2, b3, b4, b5, b6, b7, b8, b9, c0, c1, c2, c3, c4, c5,
        c6, c7, c8, c9, d0, d1, d2, d3, d4, d5, d6, d7, d8, d9;
};
RNET_PLAIN(Many, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, b0, b1, b2, b3, b4, b5, b6, b7, b8, b9, c0, c1, c2, c3, c4, c5,
           c6, c7, c8, c9, d0, d1, d2, d3, d4, d5, d6, d7, d8, d9)

TEST("plain structs arrive") {
    Domain domain;
    auto node = domain.node();
    auto publisher = node.publisher<Arm>("/arm");
    auto subscriber = node.subscriber<Arm>("/arm");
    publisher.wait_for_subscribers_for(1, limit);
    Arm arm{};
    std::strcpy(arm.name, "left");
    arm.mode = Mode::moving;
    arm.forces[1] = {{1, 2, 3}, 4};
    arm.matrix[1][2][3] = 7;
    arm.counts[4] = 8;
    arm.i64 = -9;
    publisher.send(arm);
    auto view = subscriber.recv_view_for(limit);
    CHECK(view->mode == Mode::moving && view->matrix[1][2][3] == 7 && view->counts[4] == 8 && view->i64 == -9);
    CHECK(view.bytes().data() == reinterpret_cast<const std::uint8_t*>(&*view));
    auto kept = view.keep();
    CHECK(std::string(kept->name) == "left" && kept->forces[1].newton[2] == 3 && kept->forces[1].time_ns == 4);

    auto many = node.publisher<Many>("/many");
    auto received = node.subscriber<Many>("/many");
    many.wait_for_subscribers_for(1, limit);
    Many sent{};
    sent.d9 = 40;
    many.send(sent);
    CHECK(received.recv_for(limit)->d9 == 40);
}

TEST("the type of a plain struct has its name") {
    CHECK(rnet::Message<Force>::type()->name() == "Force");
    CHECK(rnet::Message<LevelV2>::type()->name() == "Level");
    CHECK(rnet::Message<Bytes>::type()->name() == "");
}

TEST("a shorter message is extended with zeros, and a longer one is read") {
    Domain domain;
    auto node = domain.node();
    auto old_publisher = node.publisher<LevelV1>("/level");
    auto new_publisher = node.publisher<LevelV2>("/level");
    auto old_subscriber = node.subscriber<LevelV1>("/level");
    auto new_subscriber = node.subscriber<LevelV2>("/level");
    old_publisher.wait_for_subscribers_for(2, limit);
    new_publisher.wait_for_subscribers_for(2, limit);
    for (int turn = 0; turn < 2; ++turn) {
        new_publisher.send({5, 6});
        CHECK(old_subscriber.recv_for(limit)->volt == 5);
        auto whole = new_subscriber.recv_for(limit);
        CHECK(whole->volt == 5 && whole->ampere == 6);
        old_publisher.send({7});
        CHECK(old_subscriber.recv_for(limit)->volt == 7);
        auto kept = new_subscriber.recv_for(limit);
        CHECK(kept->volt == 7 && kept->ampere == 0 && kept.bytes().size() == 8);
        auto moved = std::move(kept);
        CHECK(moved->volt == 7 && moved->ampere == 0);
    }
}

TEST("a bool is 0 or 1, whatever its publisher sends") {
    Domain domain;
    auto node = domain.node();
    auto publisher = node.publisher<Flags>("/flags");
    auto subscriber = node.subscriber<Flags>("/flags");
    publisher.wait_for_subscribers_for(1, limit);
    std::uint8_t sent[sizeof(Flags)] = {9, 0, 0, 0, 2, 0, 255, 1, 0, 0, 0, 128};
    CHECK(rnet_publisher_send(publisher.handle(), sent, sizeof sent, nullptr) == RNET_OK);
    auto received = subscriber.recv_for(limit);
    std::uint8_t read[sizeof(Flags)];
    std::memcpy(read, &*received, sizeof read);
    const std::uint8_t expected[sizeof(Flags)] = {9, 0, 0, 0, 1, 0, 1, 1, 0, 0, 0, 1};
    CHECK(std::memcmp(read, expected, sizeof read) == 0 && received->number == 9);
}

TEST("types that differ are reported") {
    Domain domain;
    auto node = domain.node();
    auto publisher = node.publisher<Force>("/typed");
    auto subscriber = node.subscriber<LevelV1>("/typed");
    auto failed = subscriber.recv_for(limit, std::nothrow);
    CHECK(!failed && failed.error().code() == Code::incompatible_type);
    CHECK(failed.error().topic() == "/typed" && std::string(failed.error().what()).find("Force") != std::string::npos);
    CHECK(thrown([&] { publisher.wait_for_subscribers_for(1, limit); }) == Code::incompatible_type);
    auto raw = node.subscriber("/typed");
    publisher.wait_for_subscribers_for(1, limit);
    publisher.send({{1, 0, 0}, 0});
    const auto bytes = raw.recv_for(limit);
    CHECK(bytes.bytes().size() == sizeof(Force));
    const std::uint8_t one = 1;
    CHECK(rnet_publisher_send(publisher.handle(), &one, 1, nullptr) == RNET_BAD_VALUE);
}

TEST("types of C are checked") {
    rnet_type* type = nullptr;
    rnet_field fields[2] = {};
    fields[0].name = "a";
    fields[0].primitive = RNET_F64;
    fields[1].name = "b";
    fields[1].offset = 4;
    fields[1].primitive = RNET_U32;
    CHECK(rnet_type_plain("X", 8, 8, fields, 2, &type, nullptr) == RNET_BAD_VALUE);
    fields[1].offset = 8;
    CHECK(rnet_type_plain("X", 8, 8, fields, 2, &type, nullptr) == RNET_BAD_VALUE);
    fields[1].primitive = 12;
    CHECK(rnet_type_plain("X", 16, 8, fields, 2, &type, nullptr) == RNET_INVALID_ARGUMENT);
    fields[1].primitive = RNET_STRUCT;
    CHECK(rnet_type_plain("X", 16, 8, fields, 2, &type, nullptr) == RNET_INVALID_ARGUMENT);
    CHECK(type == nullptr && rnet_type_plain("X", 8, 8, fields, 1, &type, nullptr) == RNET_OK);
    fields[1].struct_type = type;
    rnet_type* outer = nullptr;
    CHECK(rnet_type_plain("Y", 16, 8, fields, 2, &outer, nullptr) == RNET_OK);
    rnet_type_free(type);
    CHECK(std::string(rnet_type_name(outer)) == "Y");
    rnet_type_free(outer);
}

#if defined(RNET_TEST_PROTOBUF)
using google::protobuf::Struct;
using google::protobuf::Timestamp;

TEST("protobuf messages arrive") {
    Domain domain;
    auto node = domain.node();
    auto publisher = node.publisher<Struct>("/proto");
    auto subscriber = node.subscriber<Struct>("/proto");
    CHECK(rnet::Message<Struct>::type().value().name() == "google.protobuf.Struct");
    publisher.wait_for_subscribers_for(1, limit);
    Struct message;
    (*message.mutable_fields())["x"].set_number_value(1.5);
    publisher.send(message);
    CHECK(subscriber.recv_view_for(limit)->fields().at("x").number_value() == 1.5);
    (*message.mutable_fields())["long"].set_string_value(std::string(100'000, 'a'));
    publisher.send(message);
    auto view = subscriber.recv_view_for(limit);
    CHECK(view.bytes().size() > 100'000);
    auto kept = view.keep();
    publisher.send(Struct());
    CHECK(subscriber.recv_for(limit)->fields().empty());
    subscriber.close();
    CHECK(kept->fields().at("long").string_value().size() == 100'000 && kept->fields().size() == 2);

    auto latest = node.subscriber<Struct>("/proto");
    publisher.wait_for_subscribers_for(1, limit);
    publisher.send(message);
    CHECK(latest.latest_for(limit)->fields().size() == 2);
}

TEST("a malformed protobuf message is reported, and the next one received") {
    Domain domain;
    auto node = domain.node();
    auto publisher = node.publisher<Timestamp>("/time");
    auto subscriber = node.subscriber<Timestamp>("/time");
    std::atomic<int> errors{0}, seconds{0};
    auto subscription = node.subscriber<Timestamp>("/time").on(
        [&](auto& time) { seconds += static_cast<int>(time->seconds()); },
        [&](const rnet::Error& error) { errors += error.code() == Code::malformed; });
    publisher.wait_for_subscribers_for(2, limit);
    const std::uint8_t garbage[] = {0xff, 0xff};
    CHECK(rnet_publisher_send(publisher.handle(), garbage, sizeof garbage, nullptr) == RNET_OK);
    Timestamp time;
    time.set_seconds(7);
    publisher.send(time);
    auto failed = subscriber.recv_for(limit, std::nothrow);
    CHECK(!failed && failed.error().code() == Code::malformed && failed.error().topic() == "/time");
    CHECK(subscriber.recv_for(limit)->seconds() == 7);
    CHECK(eventually([&] { return errors == 1 && seconds == 7; }));
    CHECK(rnet_publisher_send(publisher.handle(), garbage, sizeof garbage, nullptr) == RNET_OK);
    publisher.send(time);
    for (auto& sample : subscriber) {
        CHECK(sample->seconds() == 7);
        break;
    }
}
#endif

}  // namespace

RNET_TEST_MAIN()
