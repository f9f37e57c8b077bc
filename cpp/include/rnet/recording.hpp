// Recordings: MCAP files that Recorder writes and Recording reads.
//
//     rnet::RecorderOptions options;
//     options.topics = {"/arm/**"};
//     auto recorder = rnet::Recorder::start("arm.mcap", options);
//     ...
//     std::cout << recorder.stop().messages << " messages\n";
//
//     auto recording = rnet::Recording::open("arm.mcap");
//     for (const auto& leg : recording.messages<Leg>("/arm/leg")) std::cout << leg->force << '\n';
#pragma once

#include <rnet/inspect.hpp>
#include <rnet/message.hpp>

#include <chrono>
#include <cstdint>
#include <iterator>
#include <map>
#include <new>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rnet {

/// Compression of a recording.
enum class Compression {
    zstd = RNET_COMPRESSION_ZSTD,
    lz4 = RNET_COMPRESSION_LZ4,
    none = RNET_COMPRESSION_NONE,
};

/// Options of Recorder::start(): see rnet_recorder_options in rnet.h. Empty and 0 mean the default.
struct RecorderOptions {
    /// Patterns: * is one part of a name, ** any number of parts. All topics if empty.
    std::vector<std::string> topics = {};
    std::vector<std::string> excluded_topics = {};
    std::vector<std::string> types = {};
    std::vector<std::string> nodes = {};
    std::vector<std::string> hosts = {};
    Compression compression = Compression::zstd;
    /// Record images and point clouds as sent.
    bool raw = false;
    /// Write a file for ROS 2.
    bool ros2 = false;
    /// Record state and parameters.
    bool state = true;
    /// Record only while this topic has a publisher.
    std::string while_topic = {};
    std::chrono::nanoseconds duration{0};
    std::chrono::nanoseconds split_time{0};
    std::chrono::nanoseconds keep_time{0};
    std::uint64_t split_size_bytes = 0;
    std::uint64_t max_disk_bytes = 0;
    std::uint64_t buffer_len_bytes = 0;
    DomainOptions domain = {};
};

/// Messages that are missing in a recording.
struct RecorderLoss {
    std::string topic;
    std::string node;
    /// "overrun", "reused", "queue", "disk_full", …
    std::string cause;
    std::uint64_t count = 0;
};

/// The progress or the result of a recording.
struct RecorderReport {
    /// Messages recorded, and their bytes.
    std::uint64_t messages = 0;
    std::uint64_t bytes = 0;
    /// Messages of the followed publishers that are missing; by cause in `losses`.
    std::uint64_t missing = 0;
    /// Publishers followed since the start.
    std::uint64_t followed = 0;
    /// Publishers that were seen but not read, or not to their end.
    std::uint64_t unread = 0;
    std::uint64_t file_bytes = 0;
    /// Whether it has ended by itself.
    bool is_finished = false;
    bool disk_is_full = false;
    std::vector<RecorderLoss> losses;
    /// The existing files, the oldest first.
    std::vector<std::string> files;
    /// What prevents writing now, and what happened since the last report.
    std::vector<std::string> notes;
};

/// Records a domain from outside. Its destructor stops it. One thread at a time may use it.
class Recorder {
public:
    /// Starts to record into `file`, which must not exist. Fails with Code::record_failed.
    static Result<Recorder> start(const std::string& file, const RecorderOptions& options, std::nothrow_t) {
        using detail::text_or_null;
        const auto topics = detail::pointers(options.topics);
        const auto excluded = detail::pointers(options.excluded_topics);
        const auto types = detail::pointers(options.types), nodes = detail::pointers(options.nodes);
        const auto hosts = detail::pointers(options.hosts);
        rnet_recorder_options given{};
        given.struct_size = sizeof given;
        given.domain = text_or_null(options.domain.domain);
        given.dir = text_or_null(options.domain.dir);
        given.group = text_or_null(options.domain.group);
        given.topics = topics.data(), given.topic_count = topics.size();
        given.excluded_topics = excluded.data(), given.excluded_topic_count = excluded.size();
        given.types = types.data(), given.type_count = types.size();
        given.nodes = nodes.data(), given.node_count = nodes.size();
        given.hosts = hosts.data(), given.host_count = hosts.size();
        given.while_topic = text_or_null(options.while_topic);
        given.compression = static_cast<int>(options.compression);
        given.raw = options.raw;
        given.ros2 = options.ros2;
        given.without_state = !options.state;
        given.duration_ns = options.duration.count();
        given.split_time_ns = options.split_time.count();
        given.keep_time_ns = options.keep_time.count();
        given.split_size_bytes = options.split_size_bytes;
        given.max_disk_bytes = options.max_disk_bytes;
        given.buffer_len_bytes = options.buffer_len_bytes;
        rnet_recorder* made = nullptr;
        rnet_error* error = nullptr;
        const rnet_code code = rnet_recorder_start(file.c_str(), &given, &made, &error);
        if (code != RNET_OK) return Error(static_cast<Code>(code), error);
        return Recorder(made);
    }
    static Recorder start(const std::string& file, const RecorderOptions& options = {}) {
        return start(file, options, std::nothrow).value();
    }

    /// The progress so far.
    Result<RecorderReport> progress(std::nothrow_t) {
        rnet_recorder_report* made = nullptr;
        rnet_error* error = nullptr;
        const rnet_code code = rnet_recorder_progress(handle(), &made, &error);
        return report(code, made, error);
    }
    RecorderReport progress() { return progress(std::nothrow).value(); }

    /// Completes the file with all messages that were sent before, and gives the result. Fails with
    /// Code::record_failed if the recording ended before.
    Result<RecorderReport> stop(std::nothrow_t) {
        rnet_recorder_report* made = nullptr;
        rnet_error* error = nullptr;
        const rnet_code code = rnet_recorder_stop(handle(), &made, &error);
        return report(code, made, error);
    }
    RecorderReport stop() { return stop(std::nothrow).value(); }

    rnet_recorder* handle() const noexcept { return handle_.get(); }

private:
    explicit Recorder(rnet_recorder* made) : handle_(made) {}
    static Result<RecorderReport> report(rnet_code code, rnet_recorder_report* made, rnet_error* error) {
        if (code != RNET_OK) return Error(static_cast<Code>(code), error);
        const detail::Handle<rnet_recorder_report, rnet_recorder_report_free> owned(made);
        const rnet_recorder_info& it = *rnet_recorder_report_describe(made);
        RecorderReport report{it.messages, it.bytes, it.missing, it.followed, it.unread, it.file_bytes,
                              it.is_finished, it.disk_is_full, {}, detail::strings(it.files, it.file_count),
                              detail::strings(it.notes, it.note_count)};
        for (std::size_t at = 0; const rnet_recorder_loss* loss = rnet_recorder_report_loss(made, at); ++at) {
            report.losses.push_back({loss->topic, loss->node, loss->cause, loss->count});
        }
        return report;
    }
    detail::Handle<rnet_recorder, rnet_recorder_free> handle_;
};

/// A time of a recording: ns since 1970 UTC.
using RecordedTime = std::chrono::time_point<std::chrono::system_clock, std::chrono::nanoseconds>;

/// A message of a recording. Valid until the next one is read.
class RecordedMessage {
public:
    explicit RecordedMessage(const rnet_recorded_message* message) : message_(message) {}

    std::string_view topic() const { return message_->channel->topic; }
    /// Node of the publisher; empty if the file does not name it.
    std::string_view node() const { return message_->channel->node; }
    /// Empty for raw bytes.
    std::string_view type_name() const { return message_->channel->type_name; }
    /// The sequence number at its publisher, the low 32 bits.
    std::uint32_t sequence() const { return message_->sequence; }
    /// When it was recorded.
    RecordedTime log_time() const { return RecordedTime(std::chrono::nanoseconds(message_->log_ns)); }
    /// When it was sent.
    RecordedTime publish_time() const { return RecordedTime(std::chrono::nanoseconds(message_->publish_ns)); }
    /// Its content, encoded as Recording::type() describes. It may have any alignment.
    Bytes data() const { return {message_->data.data, message_->data.len}; }
    const rnet_recorded_message* handle() const noexcept { return message_; }

private:
    const rnet_recorded_message* message_;
};

/// A message of a recording, decoded. Valid until the next one is read.
template <class T>
class Recorded : public RecordedMessage {
public:
    Recorded(RecordedMessage message, const T* value) : RecordedMessage(message), value_(value) {}
    const T& value() const { return *value_; }
    const T& operator*() const { return *value_; }
    const T* operator->() const { return value_; }

private:
    const T* value_;
};

namespace detail {

/// An iterator over what `next()` of a source gives.
template <class Source, class Item>
class NextIterator {
public:
    using iterator_category = std::input_iterator_tag;
    using value_type = Item;
    using difference_type = std::ptrdiff_t;
    using pointer = const Item*;
    using reference = const Item&;

    NextIterator() = default;
    explicit NextIterator(Source* source) : source_(source), item_(source->next()) {}
    reference operator*() const { return *item_; }
    pointer operator->() const { return &*item_; }
    NextIterator& operator++() {
        item_.reset();
        item_ = source_->next();
        return *this;
    }
    void operator++(int) { ++*this; }
    friend bool operator==(const NextIterator& a, const NextIterator& b) { return a.is_end() && b.is_end(); }
    friend bool operator!=(const NextIterator& a, const NextIterator& b) { return !(a == b); }

private:
    bool is_end() const { return !item_.has_value(); }
    Source* source_ = nullptr;
    std::optional<Item> item_;
};

}  // namespace detail

/// Messages of a recording, in the order in which they were recorded. One thread at a time may use it.
///
/// A part of the file that cannot be read is an error with Code::read_failed: a range-for throws it. A loop
/// with next() can continue after it.
class RecordedMessages {
public:
    using iterator = detail::NextIterator<RecordedMessages, RecordedMessage>;
    /// Takes over an object of the C API.
    explicit RecordedMessages(rnet_recorded_messages* made) : handle_(made) {}

    /// The next message; std::nullopt at the end.
    Result<std::optional<RecordedMessage>> next(std::nothrow_t) {
        const rnet_recorded_message* message = nullptr;
        rnet_error* error = nullptr;
        const rnet_code code = rnet_recorded_messages_next(handle(), &message, &error);
        if (code != RNET_OK) return Error(static_cast<Code>(code), error);
        if (!message) return std::optional<RecordedMessage>();
        return std::optional<RecordedMessage>(message);
    }
    std::optional<RecordedMessage> next() { return next(std::nothrow).value(); }

    iterator begin() { return iterator(this); }
    iterator end() { return {}; }
    rnet_recorded_messages* handle() const noexcept { return handle_.get(); }

private:
    detail::Handle<rnet_recorded_messages, rnet_recorded_messages_free> handle_;
};

/// As RecordedMessages, decoded as T.
template <class T>
class DecodedMessages {
public:
    using iterator = detail::NextIterator<DecodedMessages, Recorded<T>>;
    /// Decodes messages that are all of a type that is compatible with T.
    explicit DecodedMessages(RecordedMessages messages) : messages_(std::move(messages)) {}

    Result<std::optional<Recorded<T>>> next(std::nothrow_t) {
        auto found = messages_.next(std::nothrow);
        if (!found) return found.error();
        if (!*found) return std::optional<Recorded<T>>();
        const Bytes data = (*found)->data();
        if constexpr (Message<T>::in_place) {
            value_ = Message<T>::view(data);
        } else {
            const Result<void> decoded = Message<T>::decode(data, value_);
            if (!decoded) return decoded.error();
        }
        return std::optional<Recorded<T>>(std::in_place, **found, &value_);
    }
    std::optional<Recorded<T>> next() { return next(std::nothrow).value(); }

    iterator begin() { return iterator(this); }
    iterator end() { return {}; }
    rnet_recorded_messages* handle() const noexcept { return messages_.handle(); }

private:
    RecordedMessages messages_;
    T value_{};
};

/// Which messages of a recording to read; by default all that publishers sent.
struct RecordingSelect {
    std::vector<std::string> topics = {};
    std::optional<RecordedTime> start = {};
    /// Exclusive.
    std::optional<RecordedTime> end = {};
    /// Also the channels of the recorder itself.
    bool internal = false;
    /// First the messages that transient_local publishers kept at `start`.
    bool latched = false;
};

/// A topic of a recording.
struct RecordedTopic {
    std::string name;
    /// Usually one; "" for raw bytes.
    std::set<std::string> types;
    /// Nodes of its publishers, if the file names them.
    std::set<std::string> nodes;
    std::uint64_t message_count = 0;
};

/// An open MCAP file, of robot-net or another program. Any thread may use it.
class Recording {
public:
    /// Fails with Code::read_failed, which names the file. Problems within it are in problems().
    static Result<Recording> open(const std::string& path, std::nothrow_t) {
        rnet_recording* made = nullptr;
        rnet_error* error = nullptr;
        const rnet_code code = rnet_recording_open(path.c_str(), &made, &error);
        if (code != RNET_OK) return Error(static_cast<Code>(code), error);
        return Recording(made);
    }
    static Recording open(const std::string& path) { return open(path, std::nothrow).value(); }

    std::string_view path() const { return info().path; }
    /// "rnet", "ros2", or another text of its writer.
    std::string_view profile() const { return info().profile; }
    std::uint64_t message_count() const { return info().message_count; }
    /// When the first message was recorded; nothing for an empty file.
    std::optional<RecordedTime> start_time() const { return time(info().start_ns); }
    /// When the last message was recorded; nothing for an empty file.
    std::optional<RecordedTime> end_time() const { return time(info().end_ns); }
    /// Whether written data cannot be read. A missing end is a problem, but not damage.
    bool is_damaged() const { return info().is_damaged; }
    /// Problems that opening the file has found; empty for a complete file without damage.
    std::vector<std::string> problems() const {
        return detail::strings(info().problems, info().problem_count);
    }

    /// The topics by name, without those of the recorder itself.
    std::map<std::string, RecordedTopic> topics() const {
        std::map<std::string, RecordedTopic> all;
        for (std::size_t at = 0; const auto* channel = rnet_recording_channel(handle(), at); ++at) {
            if (channel->is_internal) continue;
            RecordedTopic& topic = all[channel->topic];
            topic.name = channel->topic;
            topic.types.insert(channel->type_name);
            if (*channel->node) topic.nodes.insert(channel->node);
            topic.message_count += channel->message_count;
        }
        return all;
    }
    /// The metadata records by name; the first one if a name repeats.
    std::map<std::string, std::map<std::string, std::string>> metadata() const {
        std::map<std::string, std::map<std::string, std::string>> all;
        std::map<std::string, std::size_t> records;
        for (std::size_t at = 0; const auto* entry = rnet_recording_metadata(handle(), at); ++at) {
            if (records.emplace(entry->name, entry->record).first->second != entry->record) continue;
            all[entry->name][entry->key] = entry->value;
        }
        return all;
    }

    /// The type of a message that was read, for to_json().
    Result<Type> type(const RecordedMessage& message, std::nothrow_t) const {
        return Type::make(rnet_recording_type, handle(), message.handle()->channel_index);
    }
    Type type(const RecordedMessage& message) const { return type(message, std::nothrow).value(); }

    /// Messages, as bytes. Fails with Code::read_failed if the recording does not have one of the topics.
    Result<RecordedMessages> messages(const RecordingSelect& select, std::nothrow_t) const {
        const auto topics = detail::pointers(select.topics);
        rnet_recording_select given{};
        given.struct_size = sizeof given;
        given.topics = topics.data(), given.topic_count = topics.size();
        given.start_ns = select.start ? ns(*select.start) : 0;
        given.end_ns = select.end ? ns(*select.end) : 0;
        given.with_internal = select.internal;
        given.with_latched = select.latched;
        rnet_recorded_messages* made = nullptr;
        rnet_error* error = nullptr;
        const rnet_code code = rnet_recording_messages(handle(), &given, &made, &error);
        if (code != RNET_OK) return Error(static_cast<Code>(code), error);
        return RecordedMessages(made);
    }
    RecordedMessages messages(const RecordingSelect& select = {}) const {
        return messages(select, std::nothrow).value();
    }

    /// Messages of a topic, decoded. Fails with Code::incompatible_type if one of its publishers had another
    /// type. `select.topics` is not used.
    template <class T>
    Result<DecodedMessages<T>> messages(std::string_view topic, RecordingSelect select,
                                        std::nothrow_t) const {
        auto type = Message<T>::type();
        if (!type) return type.error();
        for (std::size_t at = 0; const auto* channel = rnet_recording_channel(handle(), at); ++at) {
            if (topic != channel->topic) continue;
            rnet_error* error = nullptr;
            const rnet_code code = rnet_recording_check_type(handle(), at, type->handle(), &error);
            if (code != RNET_OK) return Error(static_cast<Code>(code), error);
        }
        select.topics = {std::string(topic)};
        auto found = messages(select, std::nothrow);
        if (!found) return found.error();
        return DecodedMessages<T>(*std::move(found));
    }
    template <class T>
    DecodedMessages<T> messages(std::string_view topic, RecordingSelect select = {}) const {
        return messages<T>(topic, std::move(select), std::nothrow).value();
    }

    const rnet_recording* handle() const noexcept { return handle_.get(); }

private:
    explicit Recording(rnet_recording* made) : handle_(made) {}
    const rnet_recording_info& info() const { return *rnet_recording_describe(handle()); }
    static std::uint64_t ns(RecordedTime time) {
        return static_cast<std::uint64_t>(time.time_since_epoch().count());
    }
    std::optional<RecordedTime> time(std::uint64_t ns) const {
        if (info().message_count == 0) return std::nullopt;
        return RecordedTime(std::chrono::nanoseconds(ns));
    }
    detail::Handle<rnet_recording, rnet_recording_free> handle_;
};

}  // namespace rnet
