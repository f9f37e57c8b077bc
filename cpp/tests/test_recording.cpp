// Recording and reading of recordings.
#include "robot.hpp"

#include <rnet/recording.hpp>

#include <filesystem>
#include <fstream>
#include <sys/wait.h>
#include <thread>

using robot::Leg;
namespace fs = std::filesystem;

namespace other {

/// As robot::Leg, with another type of a field.
struct Leg {
    double force;
    float turns;
    std::int32_t side;
};
RNET_PLAIN(Leg, force, turns, side)

}  // namespace other

namespace {

/// A folder that is removed at the end of the test.
struct Folder {
    fs::path path = fs::temp_directory_path() / check::domain();
    Folder() { fs::create_directory(path); }
    ~Folder() { fs::remove_all(path); }
    std::string operator/(const char* name) const { return (path / name).string(); }
};

rnet::RecorderOptions options_of(const check::Domain& domain) {
    rnet::RecorderOptions options;
    options.domain = robot::options_of(domain);
    options.state = false;
    return options;
}

/// Records 5 texts on /text, 20 legs on /leg, and one text on /secret, which is left out.
rnet::RecorderReport record(const std::string& file) {
    check::Domain domain;
    auto node = domain.node();
    auto text = node.publisher("/text"), secret = node.publisher("/secret");
    auto leg = node.publisher<Leg>("/leg");
    auto options = options_of(domain);
    options.excluded_topics = {"/secret", "/_rnet/**"};
    auto recorder = rnet::Recorder::start(file, options);
    secret.send("x");
    for (int n = 0; n < 20; ++n) {
        if (n < 5) text.send("text " + std::to_string(n));
        leg.send(Leg{n / 4.0, n, 1});
    }
    return recorder.stop();
}

std::size_t count(rnet::RecordedMessages messages) {
    std::size_t count = 0;
    for ([[maybe_unused]] const auto& message : messages) ++count;
    return count;
}

bool names(const rnet::Error& error, const std::string& file) {
    return std::string(error.what()).find(file) != std::string::npos;
}

}  // namespace

TEST("a recording has the messages that were sent") {
    Folder folder;
    const std::string file = folder / "run.mcap";
    const auto report = record(file);
    CHECK(report.messages == 25 && report.missing == 0 && report.losses.empty());
    CHECK(report.followed == 2 && report.unread == 0);
    CHECK(report.files == std::vector<std::string>{file} && report.is_finished);

    const auto recording = rnet::Recording::open(file);
    CHECK(recording.path() == file && recording.profile() == "rnet" && recording.message_count() == 25);
    CHECK(recording.problems().empty() && !recording.is_damaged());
    const auto topics = recording.topics();
    CHECK(topics.size() == 2);
    CHECK(topics.at("/leg").message_count == 20 && topics.at("/text").message_count == 5);
    CHECK(topics.at("/leg").types == std::set<std::string>{"Leg"});
    CHECK(topics.at("/text").types == std::set<std::string>{""});
    CHECK(topics.at("/leg").nodes == std::set<std::string>{"/test"});
    CHECK(recording.metadata().at("rnet.recording").count("host") == 1);

    int n = 0;
    for (const auto& leg : recording.messages<Leg>("/leg")) {
        CHECK(leg->turns == n && leg->force == n / 4.0 && leg.value().side == 1);
        CHECK(leg.topic() == "/leg" && leg.node() == "/test" && leg.type_name() == "Leg");
        CHECK(leg.sequence() == static_cast<unsigned>(n));
        CHECK(leg.publish_time() <= leg.log_time() && leg.log_time() >= *recording.start_time());
        CHECK(leg.log_time() <= *recording.end_time());
        ++n;
    }
    CHECK(n == 20);

    auto all = recording.messages();
    std::optional<rnet::RecordedMessage> first = all.next();
    CHECK(first && rnet::text_of(first->data()) == "text 0" && first->type_name().empty());
    auto leg = recording.messages<Leg>("/leg");
    const auto message = leg.next();
    CHECK(rnet::to_json(recording.type(*message), message->data()) == R"({"force":0.0,"turns":0,"side":1})");
}

TEST("topics and times select messages") {
    Folder folder;
    record(folder / "run.mcap");
    const auto recording = rnet::Recording::open(folder / "run.mcap");
    rnet::RecordingSelect select;
    CHECK(count(recording.messages(select)) == 25);
    select.topics = {"/text"};
    CHECK(count(recording.messages(select)) == 5);
    select.topics = {"/text", "/leg"};
    auto messages = recording.messages();
    for (int n = 0; n < 10; ++n) CHECK(messages.next());
    const auto middle = messages.next()->log_time();
    select.start = middle;
    const std::size_t after = count(recording.messages(select));
    select.start = {};
    select.end = middle;
    CHECK(after > 0 && after < 25 && count(recording.messages(select)) + after == 25);
    select.end = recording.start_time();
    CHECK(count(recording.messages(select)) == 0);

    select.topics = {"/other"};
    const auto refused = recording.messages(select, std::nothrow);
    CHECK(!refused && refused.error().code() == rnet::Code::read_failed);
    CHECK(names(refused.error(), "/other") && names(refused.error(), folder / "run.mcap"));
}

TEST("another type is refused") {
    Folder folder;
    record(folder / "run.mcap");
    const auto recording = rnet::Recording::open(folder / "run.mcap");
    const auto raw = recording.messages<Leg>("/text", {}, std::nothrow);
    CHECK(!raw && raw.error().code() == rnet::Code::incompatible_type);
    const auto refused = recording.messages<other::Leg>("/leg", {}, std::nothrow);
    CHECK(!refused && refused.error().code() == rnet::Code::incompatible_type);
    CHECK(names(refused.error(), "turns") && names(refused.error(), folder / "run.mcap"));
    // Any message can be read as bytes.
    CHECK(recording.messages<rnet::Bytes>("/leg").next()->value().size() == sizeof(Leg));
    CHECK(rnet_recording_check_type(recording.handle(), 0, nullptr, nullptr) == RNET_OK);
    CHECK(rnet_recording_check_type(recording.handle(), 99, nullptr, nullptr) == RNET_INVALID_ARGUMENT);
}

TEST("errors name the file") {
    Folder folder;
    const std::string missing = folder / "missing.mcap", other = folder / "other.mcap";
    const std::string run = folder / "run.mcap";
    std::ofstream(other) << "not a recording";
    record(run);
    for (const std::string& file : {missing, other}) {
        const auto opened = rnet::Recording::open(file, std::nothrow);
        CHECK(!opened && opened.error().code() == rnet::Code::read_failed && names(opened.error(), file));
    }
    fs::resize_file(run, 12);
    const auto opened = rnet::Recording::open(run, std::nothrow);
    CHECK(!opened && opened.error().code() == rnet::Code::read_failed && names(opened.error(), run));
}

TEST("a truncated recording is read as far as it goes") {
    Folder folder;
    const std::string file = folder / "run.mcap";
    record(file);
    fs::resize_file(file, fs::file_size(file) - 40);
    const auto recording = rnet::Recording::open(file);
    CHECK(!recording.problems().empty() && recording.problems()[0].find(file) == 0);
    CHECK(!recording.is_damaged() && count(recording.messages()) == 25);
}

TEST("a damaged part is an error, and reading continues after it") {
    Folder folder;
    const std::string file = folder / "run.mcap";
    check::Domain domain;
    auto node = domain.node();
    rnet::PublisherOptions long_log;
    long_log.log_len_bytes = 4 << 20;
    auto text = node.publisher("/text", long_log);
    auto options = options_of(domain);
    options.compression = rnet::Compression::none;
    options.topics = {"/text"};
    auto recorder = rnet::Recorder::start(file, options);
    // More than two chunks of 1 MiB.
    for (int n = 0; n < 700; ++n) text.send(std::string(4000, 'x'));
    CHECK(recorder.stop().messages == 700);
    std::fstream change(file, std::ios::in | std::ios::out | std::ios::binary);
    change.seekp(500000).write("damage", 6);
    change.close();
    const auto recording = rnet::Recording::open(file);
    auto messages = recording.messages();
    std::size_t read = 0, failed = 0;
    while (true) {
        auto next = messages.next(std::nothrow);
        if (!next) {
            CHECK(next.error().code() == rnet::Code::read_failed && names(next.error(), file));
            ++failed;
            continue;
        }
        if (!*next) break;
        ++read;
    }
    CHECK(failed == 1 && read > 0 && read < 700);
    bool thrown = false;
    try {
        count(recording.messages());
    } catch (const rnet::Error& error) {
        thrown = error.code() == rnet::Code::read_failed;
    }
    CHECK(thrown);
}

TEST("a recording ends after its time, and is split") {
    Folder folder;
    check::Domain domain;
    auto node = domain.node();
    auto text = node.publisher("/text");
    auto options = options_of(domain);
    options.duration = std::chrono::milliseconds(100);
    auto recorder = rnet::Recorder::start(folder / "run.mcap", options);
    while (!recorder.progress().is_finished) std::this_thread::yield();
    CHECK(recorder.stop().is_finished);

    options.duration = {};
    options.split_time = std::chrono::milliseconds(20);
    auto split = rnet::Recorder::start(folder / "split.mcap", options);
    while (split.progress().files.size() < 3) {
        text.send("x");
        std::this_thread::sleep_for(std::chrono::milliseconds(1));  // sleep: pace of the messages
    }
    const auto report = split.stop();
    std::uint64_t messages = 0;
    for (const std::string& file : report.files) messages += rnet::Recording::open(file).message_count();
    CHECK(report.files.size() >= 3 && report.files[1] == folder / "split_1.mcap");
    CHECK(report.missing == 0 && messages >= report.messages);
}

TEST("options are checked") {
    Folder folder;
    const std::string file = folder / "run.mcap";
    check::Domain domain;
    auto options = options_of(domain);
    options.topics = {"no slash//"};
    auto code_of = [&] { return rnet::Recorder::start(file, options, std::nothrow).error().code(); };
    CHECK(code_of() == rnet::Code::bad_name);
    options.topics = {};
    options.split_size_bytes = 1000;
    CHECK(code_of() == rnet::Code::record_failed);
    options.split_size_bytes = 0;
    options.duration = std::chrono::nanoseconds(-1);
    CHECK(code_of() == rnet::Code::invalid_argument);
    options.duration = {};
    std::ofstream(file) << "x";
    const auto exists = rnet::Recorder::start(file, options, std::nothrow);
    CHECK(exists.error().code() == rnet::Code::record_failed && names(exists.error(), file));
    const auto nowhere = rnet::Recorder::start(folder / "a/b.mcap", options, std::nothrow);
    CHECK(nowhere.error().code() == rnet::Code::record_failed && names(nowhere.error(), "a/b.mcap"));

    rnet_recorder* recorder = nullptr;
    rnet_recorder_options given{};
    CHECK(rnet_recorder_start("x", &given, &recorder, nullptr) == RNET_INVALID_ARGUMENT);
    given.struct_size = sizeof given;
    given.compression = 9;
    CHECK(rnet_recorder_start("x", &given, &recorder, nullptr) == RNET_INVALID_ARGUMENT);
    given.compression = 0;
    given.topic_count = 1;
    CHECK(rnet_recorder_start("x", &given, &recorder, nullptr) == RNET_INVALID_ARGUMENT);
    CHECK(!recorder);
}

TEST("null, and objects that are freed in any order") {
    Folder folder;
    const std::string file = folder / "run.mcap";
    record(file);
    rnet_recorder_report* report = nullptr;
    CHECK(rnet_recorder_start(nullptr, nullptr, nullptr, nullptr) == RNET_INVALID_ARGUMENT);
    CHECK(rnet_recorder_stop(nullptr, nullptr, nullptr) == RNET_INVALID_ARGUMENT);
    CHECK(rnet_recorder_progress(nullptr, &report, nullptr) == RNET_INVALID_ARGUMENT);
    CHECK(!rnet_recorder_report_describe(nullptr) && !rnet_recorder_report_loss(nullptr, 0));
    CHECK(!rnet_recording_describe(nullptr) && !rnet_recording_channel(nullptr, 0));
    CHECK(rnet_recording_messages(nullptr, nullptr, nullptr, nullptr) == RNET_INVALID_ARGUMENT);
    rnet_recorder_free(nullptr);
    rnet_recording_free(nullptr);
    rnet_recorded_messages_free(nullptr);
    rnet_recorder_report_free(nullptr);

    rnet_recording* recording = nullptr;
    rnet_recorded_messages* messages = nullptr;
    const rnet_recorded_message* message = nullptr;
    rnet_recording_select select{};
    CHECK(rnet_recording_open(file.c_str(), nullptr, nullptr) == RNET_INVALID_ARGUMENT);
    CHECK(rnet_recording_open(file.c_str(), &recording, nullptr) == RNET_OK);
    CHECK(!rnet_recording_channel(recording, 99) && !rnet_recording_metadata(recording, 9999));
    CHECK(rnet_recording_messages(recording, &select, &messages, nullptr) == RNET_INVALID_ARGUMENT);
    CHECK(rnet_recording_messages(recording, nullptr, &messages, nullptr) == RNET_OK);
    rnet_recording_free(recording);
    for (int n = 0; n < 25; ++n) {
        CHECK(rnet_recorded_messages_next(messages, &message, nullptr) == RNET_OK);
        CHECK(message && message->channel->topic[0] == '/');
    }
    for (int n = 0; n < 2; ++n) {
        CHECK(rnet_recorded_messages_next(messages, &message, nullptr) == RNET_OK && !message);
    }
    rnet_recorded_messages_free(messages);
}

TEST("a stopped recorder is closed, and a forked child leaves it alone") {
    Folder folder;
    check::Domain domain;
    auto node = domain.node();
    auto text = node.publisher("/text");
    auto recorder = rnet::Recorder::start(folder / "run.mcap", options_of(domain));
    const pid_t child = fork();
    if (child == 0) {
        const bool closed = recorder.progress(std::nothrow).error().code() == rnet::Code::closed &&
                            recorder.stop(std::nothrow).error().code() == rnet::Code::closed;
        rnet_recorder_free(recorder.handle());
        _exit(closed ? 0 : 1);
    }
    int status = 1;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    text.send("after");
    CHECK(recorder.stop().messages >= 1);
    CHECK(recorder.stop(std::nothrow).error().code() == rnet::Code::closed);
    CHECK(recorder.progress(std::nothrow).error().code() == rnet::Code::closed);
    CHECK(rnet::Recording::open(folder / "run.mcap").topics().at("/text").message_count == 1);
}

RNET_TEST_MAIN()
