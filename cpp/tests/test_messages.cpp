// The built-in messages: their bytes are those of protobuf, and no bytes harm the decoder.
#include "check.hpp"
#include "message_types.hpp"

#include <rnet/msgs/all.hpp>

#include <atomic>
#include <chrono>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

using namespace rnet::msgs;
using Raw = std::vector<std::uint8_t>;

namespace {

template <class T>
T filled();

/// The value of xtask/src/cpp_messages/reference.rs for x.
template <class T>
T value(std::uint32_t x) {
    if constexpr (rnet::detail::is_message<T>) return filled<T>();
    else if constexpr (std::is_same_v<T, Raw>) return {static_cast<std::uint8_t>(x), 0xff, 0};
    else if constexpr (std::is_same_v<T, std::string>) return std::to_string(x) + " é € 😀";
    else if constexpr (std::is_same_v<T, bool>) return x % 2 == 0;
    else if constexpr (std::is_same_v<T, double>) return x + 0.5;
    else if constexpr (std::is_same_v<T, float>) return static_cast<float>(x) + 0.25f;
    else if constexpr (std::is_same_v<T, std::int32_t>) return -static_cast<std::int32_t>(x);
    else if constexpr (std::is_same_v<T, std::int64_t>) return -(std::int64_t{x} * (std::int64_t{1} << 33));
    else if constexpr (std::is_same_v<T, std::uint32_t>) return x * 100003;
    else if constexpr (std::is_same_v<T, std::uint64_t>) return std::uint64_t{x} << 45;
    else return static_cast<T>(x);
}

template <class T>
T filled() {
    T message;
    rnet::detail::Fields<T>::visit([&](auto number, auto member) {
        auto& field = message.*member;
        using F = std::decay_t<decltype(field)>;
        const std::uint32_t x = 1000 * number.number;
        if constexpr (rnet::detail::is_list<F>) {
            for (std::uint32_t more : {0, 1}) field.push_back(value<typename F::value_type>(x + more));
        } else if constexpr (rnet::detail::is_optional<F>) {
            field = value<typename F::value_type>(x);
        } else {
            field = value<F>(x);
        }
    });
    return message;
}

template <class T>
Raw encode(const T& message) {
    Raw buffer;
    const rnet::Bytes bytes = rnet::Message<T>::encode(message, buffer);
    return Raw(bytes.begin(), bytes.end());
}

/// Decodes a copy with exactly its own memory, so that AddressSanitizer reports each byte beyond it. What is
/// accepted is equal after another round.
template <class T>
bool decode(const std::uint8_t* bytes, std::size_t len, T& message) {
    const std::unique_ptr<std::uint8_t[]> exact(new std::uint8_t[len]);
    if (len > 0) std::memcpy(exact.get(), bytes, len);
    const auto outcome = rnet::Message<T>::decode({exact.get(), len}, message);
    if (!outcome) {
        CHECK(outcome.error().code() == rnet::Code::malformed);
        return false;
    }
    const Raw again = encode(message);
    T second;
    CHECK(rnet::Message<T>::decode(again, second) && encode(second) == again);
    return true;
}
template <class T>
bool decode(const Raw& bytes, T& message) {
    return decode(bytes.data(), bytes.size(), message);
}
template <class T>
bool accepts(const Raw& bytes) {
    T message;
    return decode(bytes, message);
}

std::uint64_t hash(const Raw& bytes) {
    std::uint64_t hash = 0xcbf29ce484222325;
    for (const std::uint8_t byte : bytes) hash = (hash ^ byte) * 0x00000100000001b3;
    return hash;
}

template <class T>
void check_bytes(const char* name, std::size_t len, std::uint64_t expected) {
    const Raw bytes = encode(filled<T>());
    if (bytes.size() != len || hash(bytes) != expected) std::printf("%s\n", name);
    CHECK(bytes.size() == len && hash(bytes) == expected);
    CHECK(std::string(rnet::detail::Fields<T>::name) == name);
}

template <class T>
void check_round_trip() {
    const T full = filled<T>();
    T message;
    CHECK(encode(message).empty());
    CHECK(decode(encode(full), message) && message == full);
    // Into a message that is in use.
    CHECK(decode(encode(full), message) && message == full);
    CHECK(decode(Raw(), message) && message == T());
}

template <class T>
void check_hostile() {
    const Raw good = encode(filled<T>());
    T message;
    const std::size_t step = good.size() / 2000 + 1;
    for (std::size_t len = 0; len < good.size(); len += step) decode(good.data(), len, message);
    std::mt19937 random(7);
    for (int round = 0; round < 300 && !good.empty(); ++round) {
        Raw bad = good;
        for (auto flips = random() % 4 + 1; flips > 0; --flips)
            bad[random() % bad.size()] ^= static_cast<std::uint8_t>(1u << random() % 8);
        decode(bad, message);
    }
    for (int round = 0; round < 300; ++round) {
        Raw noise(random() % 64);
        for (std::uint8_t& byte : noise) byte = static_cast<std::uint8_t>(random());
        decode(noise, message);
    }
}

Raw repeat(const Raw& part, std::size_t count) {
    Raw all;
    for (; count > 0; --count) all.insert(all.end(), part.begin(), part.end());
    return all;
}

}  // namespace

TEST("filled messages have the bytes of another encoder") {
#define CHECK_BYTES(T, name, len, expected) check_bytes<T>(name, len, expected);
    RNET_EACH_MESSAGE(CHECK_BYTES)
}

TEST("each message survives a round trip") {
#define CHECK_ROUND_TRIP(T, ...) check_round_trip<T>();
    RNET_EACH_MESSAGE(CHECK_ROUND_TRIP)
}

TEST("truncated, flipped and random bytes do no harm") {
#define CHECK_HOSTILE(T, ...) check_hostile<T>();
    RNET_EACH_MESSAGE(CHECK_HOSTILE)
}

TEST("each message is a type of the library") {
#define CHECK_TYPE(T, ...) CHECK(rnet::Message<T>::type().value().name() == rnet::detail::Fields<T>::name);
    RNET_EACH_MESSAGE(CHECK_TYPE)
}

TEST("unknown fields are skipped, and last values count") {
    LaserScan scan;
    // Fields 100 of each wire type, a group with a field, then start_angle = 2 after 1.
    const Raw bytes = {0xa0, 6, 0x80, 1,                                          //
                       0xa1, 6, 1, 2, 3, 4, 5, 6, 7, 8,                           //
                       0xa2, 6, 2, 9, 9,                                          //
                       0xa5, 6, 1, 2, 3, 4,                                       //
                       0xa3, 6, 8, 1, 0xa4, 6,                                    //
                       0x21, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f, 0x21, 0, 0, 0, 0, 0, 0, 0, 0x40};
    CHECK(decode(bytes, scan) && scan.start_angle == 2);
    // The parts of one message field are merged: {seconds = 1}, {nanos = 2}.
    CHECK(decode({0x0a, 2, 8, 1, 0x0a, 2, 16, 2}, scan));
    CHECK(scan.timestamp && *scan.timestamp == Timestamp(1, 2));
}

TEST("lists may be packed or not") {
    LaserScan scan;
    CHECK(decode({0x31, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f, 0x32, 8, 0, 0, 0, 0, 0, 0, 0, 0x40}, scan));
    CHECK(scan.ranges == std::vector<double>({1, 2}));
    JointCommand command;
    CHECK(decode({0x20, 2, 0x22, 2, 3, 0x63}, command));
    using Mode = JointCommand::Mode;
    CHECK(command.modes == std::vector<Mode>({Mode::hold, Mode::position, static_cast<Mode>(0x63)}));
}

TEST("malformed bytes are refused") {
    CHECK(!accepts<LaserScan>({0x20, 1}));                       // start_angle as a varint
    CHECK(!accepts<LaserScan>({0x32, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0}));   // 9 bytes of doubles
    CHECK(!accepts<LaserScan>({0x12, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}));
    CHECK(!accepts<LaserScan>({0x00, 1}) && !accepts<LaserScan>({0x07}) && !accepts<LaserScan>({0xa4, 6}));
    CHECK(!accepts<LaserScan>({0xa3, 6, 8, 1}) && !accepts<LaserScan>({0xa3, 6, 0xac, 6}));
    // A varint of ten bytes has at most 64 bits.
    CHECK(accepts<Timestamp>({8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}));
    CHECK(!accepts<Timestamp>({8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2}));
    for (const Raw& text : {Raw{0x80}, Raw{0xc0, 0x80}, Raw{0xed, 0xa0, 0x80}, Raw{0xf4, 0x90, 0x80, 0x80},
                            Raw{0xe2, 0x82}, Raw{0xff}, Raw{0xe0, 0x80, 0x80}, Raw{0xf0, 0x80, 0x80, 0x80}}) {
        Raw bytes = {0x0a, static_cast<std::uint8_t>(text.size())};
        bytes.insert(bytes.end(), text.begin(), text.end());
        CHECK(!accepts<GeoJSON>(bytes));
    }
}

TEST("the memory of a message is limited") {
    // Two bytes each, as a message and as a text.
    const std::size_t limit = std::size_t{1} << 22;
    SceneUpdate update;
    CHECK(decode(repeat({0x12, 0}, limit / 8), update) && update.entities.size() == limit / 8);
    CHECK(!decode(repeat({0x12, 0}, limit / 8 + 1), update));
    CHECK(!accepts<JointCommand>(repeat({0x1a, 0}, limit + 1)));
    Raw deep = repeat({0xa3, 6}, 64), end = repeat({0xa4, 6}, 64);
    deep.insert(deep.end(), end.begin(), end.end());
    CHECK(accepts<LaserScan>(deep) && !accepts<LaserScan>(repeat({0xa3, 6}, 100000)));
}

// A race on purpose.
#if !defined(__SANITIZE_THREAD__)
TEST("bytes may change while they are decoded") {
    SceneUpdate update = filled<SceneUpdate>();
    update.entities.resize(4, update.entities[0]);
    const Raw good = encode(update);
    Raw shared = good;
    std::atomic<bool> stop{false};
    std::thread faulty([&] {
        std::mt19937 random(9);
        volatile std::uint8_t* bytes = shared.data();
        while (!stop) {
            const std::size_t at = random() % good.size();
            bytes[at] = static_cast<std::uint8_t>(random());
            bytes[at] = good[at];
        }
    });
    std::size_t decoded = 0;
    for (int round = 0; round < 2000; ++round)
        decoded += rnet::Message<SceneUpdate>::decode(shared, update).has_value();
    stop = true;
    faulty.join();
    std::printf("        %zu of 2000 were decoded\n", decoded);
    CHECK(rnet::Message<SceneUpdate>::decode(good, update) && encode(update) == good);
}
#endif

TEST("times convert") {
    using std::chrono::nanoseconds;
    CHECK(Timestamp::from_ns(-1) == Timestamp(-1, 999999999) && Duration::from_ns(-1) == Duration(0, -1));
    using Limits = std::numeric_limits<std::int64_t>;
    for (const std::int64_t ns : {std::int64_t{0}, std::int64_t{-1500000000}, Limits::min(), Limits::max()}) {
        CHECK(Timestamp::from_ns(ns).to_ns() == ns && Duration::from_ns(ns).to_ns() == ns);
        CHECK(Duration(nanoseconds(ns)).to_ns() == ns);
    }
    CHECK(!Timestamp(Limits::max(), 0).to_ns() && !Duration(Limits::min(), -1).to_ns());
    LaserScan scan;
    scan.timestamp = std::chrono::system_clock::time_point(std::chrono::milliseconds(-1));
    CHECK(*scan.timestamp == Timestamp(-1, 999000000));
    CHECK(Duration(std::chrono::minutes(2)) == Duration(120, 0) && scan != LaserScan());
}

RNET_TEST_MAIN()
