// Received messages.
#pragma once

#include <rnet/message.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace rnet {

namespace detail {

/// Where a sample comes from.
struct Stamp {
    std::uint64_t publisher, seq, sent_ns, taken_ns;
    std::int64_t source_ns;
    std::uint64_t correlation;
    bool is_last_will;

    static Stamp of(const rnet_sample* sample) noexcept {
        return {rnet_sample_publisher(sample),   rnet_sample_seq(sample),
                rnet_sample_sent_ns(sample),     rnet_sample_taken_ns(sample),
                rnet_sample_source_ns(sample),   rnet_sample_correlation(sample),
                rnet_sample_is_last_will(sample)};
    }
};

inline std::chrono::nanoseconds latency(std::uint64_t sent_ns, std::uint64_t taken_ns) noexcept {
    return std::chrono::nanoseconds(taken_ns > sent_ns ? static_cast<std::int64_t>(taken_ns - sent_ns) : 0);
}
inline Bytes data_of(const rnet_sample* sample) noexcept {
    const rnet_bytes bytes = rnet_sample_data(sample);
    return {bytes.data, bytes.len};
}

/// A number of metadata that a publisher sets; 0 if it did not.
template <class N>
std::optional<N> if_set(N number) noexcept {
    return number != 0 ? std::optional<N>(number) : std::nullopt;
}

/// The message in bytes: where it is if possible, otherwise decoded into `buffer`, which is made if it is
/// null.
template <class T>
Result<const T*> read_message(Bytes bytes, std::unique_ptr<T>& buffer) {
    if constexpr (has_find<T>) {
        if (const T* found = Message<T>::find(bytes)) return found;
    }
    if (!buffer) buffer = std::make_unique<T>();
    auto decoded = Message<T>::decode(bytes, *buffer);
    if (!decoded) return decoded.error();
    return static_cast<const T*>(buffer.get());
}

}  // namespace detail

/// A received message that its user owns. Valid after its subscriber has received others and was closed.
/// Small ones and decoded ones are copies; a large message of bytes or of a plain type stays in the memory of
/// its publisher, of which at most 64 can be kept at a time: receiving then fails with Code::too_many_pins.
template <class T = Bytes>
class Sample {
public:
    Sample(Sample&&) = default;
    Sample& operator=(Sample&&) = default;

    /// The message; of a temporary, a copy.
    const T& operator*() const& noexcept { return *message_; }
    template <class M = T, std::enable_if_t<!std::is_same_v<M, Bytes> && !detail::has_data<M>, int> = 0>
    M operator*() && {
        if (decoded_) return std::move(*decoded_);
        return *message_;
    }
    template <class M = T, std::enable_if_t<std::is_same_v<M, Bytes> || detail::has_data<M>, int> = 0>
    M operator*() && = delete;  // The bytes would end with the sample: keep it in a variable.
    const T* operator->() const noexcept { return message_; }
    /// Its bytes as sent, for messages of bytes and of plain types: others are kept without their bytes.
    Bytes bytes() && = delete;  // As above.
    Bytes bytes() const& noexcept {
        static_assert(detail::is_in_memory<T>,
                      "a decoded message is kept without its bytes: use SampleView::bytes()");
        return detail::data_of(sample_.get());
    }
    /// Its bytes as text.
    std::string_view text() const& noexcept { return text_of(bytes()); }
    std::string text() && { return std::string(text()); }

    /// The publisher's id, the same for all its messages.
    std::uint64_t publisher() const noexcept { return stamp_.publisher; }
    /// Number of the message, counted per publisher from 0.
    std::uint64_t seq() const noexcept { return stamp_.seq; }
    /// When it was sent, CLOCK_MONOTONIC in ns.
    std::uint64_t sent_ns() const noexcept { return stamp_.sent_ns; }
    /// When the subscriber took it out of the log, CLOCK_MONOTONIC in ns. Queued messages are taken together.
    std::uint64_t taken_ns() const noexcept { return stamp_.taken_ns; }
    /// Time from sending to taking.
    std::chrono::nanoseconds latency() const noexcept { return detail::latency(sent_ns(), taken_ns()); }
    /// The time of its source, ns since 1970 UTC, if set.
    std::optional<std::int64_t> source_ns() const noexcept { return detail::if_set(stamp_.source_ns); }
    /// Its correlation with another message, if set.
    std::optional<std::uint64_t> correlation() const noexcept { return detail::if_set(stamp_.correlation); }
    /// Whether it is its publisher's last will: the process of the publisher has died.
    bool is_last_will() const noexcept { return stamp_.is_last_will; }

    /// The object of the C API; null for decoded messages.
    const rnet_sample* handle() const noexcept { return sample_.get(); }

    /// Takes over an owned sample of the C API, for messages of bytes and of plain types.
    static Result<Sample> adopt(rnet_sample* owned) {
        Sample sample(detail::Stamp::of(owned));
        sample.sample_.reset(owned);
        auto message = detail::read_message<T>(detail::data_of(owned), sample.decoded_);
        if (!message) return message.error();
        sample.message_ = *message;
        return Result<Sample>(std::move(sample));
    }
    /// A decoded message and its metadata.
    Sample(const detail::Stamp& stamp, T&& message)
        : stamp_(stamp), decoded_(std::make_unique<T>(std::move(message))), message_(decoded_.get()) {}

private:
    explicit Sample(const detail::Stamp& stamp) noexcept : stamp_(stamp) {}

    detail::Stamp stamp_;
    detail::Handle<rnet_sample, rnet_sample_free> sample_;
    std::unique_ptr<T> decoded_;
    const T* message_ = nullptr;
};

/// A received message, valid until the next call of its subscriber, or until the callback returns. Nothing is
/// copied or allocated for it. keep() makes it owned.
template <class T = Bytes>
class SampleView {
public:
    SampleView() = default;
    SampleView(SampleView&&) = default;
    SampleView& operator=(SampleView&&) = default;

    /// The message.
    const T& operator*() const noexcept { return *operator->(); }
    const T* operator->() const noexcept {
        if constexpr (std::is_same_v<T, Bytes>) {
            return &raw_;
        } else {
            return message_;
        }
    }
    /// Its bytes as sent.
    Bytes bytes() const noexcept { return detail::data_of(sample_); }
    /// Its bytes as text.
    std::string_view text() const noexcept { return text_of(bytes()); }

    /// As of Sample.
    std::uint64_t publisher() const noexcept { return rnet_sample_publisher(sample_); }
    std::uint64_t seq() const noexcept { return rnet_sample_seq(sample_); }
    std::uint64_t sent_ns() const noexcept { return rnet_sample_sent_ns(sample_); }
    std::uint64_t taken_ns() const noexcept { return rnet_sample_taken_ns(sample_); }
    std::chrono::nanoseconds latency() const noexcept { return detail::latency(sent_ns(), taken_ns()); }
    std::optional<std::int64_t> source_ns() const noexcept {
        return detail::if_set(rnet_sample_source_ns(sample_));
    }
    std::optional<std::uint64_t> correlation() const noexcept {
        return detail::if_set(rnet_sample_correlation(sample_));
    }
    bool is_last_will() const noexcept { return rnet_sample_is_last_will(sample_); }
    /// The topic, and the name of the publisher's node.
    std::string_view topic() const noexcept { return rnet_sample_topic(sample_); }
    std::string_view node() const noexcept { return rnet_sample_node(sample_); }

    /// Makes it owned, without copying a large message. The view must not be used afterwards.
    Sample<T> keep() { return keep(std::nothrow).value(); }
    Result<Sample<T>> keep(std::nothrow_t) {
        if constexpr (detail::is_in_memory<T>) {
            auto kept = detail::result_of<rnet_sample*>(rnet_sample_keep, sample_);
            if (!kept) return kept.error();
            return Sample<T>::adopt(*kept);
        } else {
            return Sample<T>(detail::Stamp::of(sample_), std::exchange(*decoded_, T()));
        }
    }

    const rnet_sample* handle() const noexcept { return sample_; }

    /// A view of a borrowed sample of the C API. `buffer` is the memory for a decoded message, which must
    /// live as long.
    static Result<SampleView> of(const rnet_sample* borrowed, std::unique_ptr<T>& buffer) {
        SampleView view;
        view.sample_ = borrowed;
        if constexpr (std::is_same_v<T, Bytes>) {
            // Not in the buffer, which several threads would share.
            view.raw_ = detail::data_of(borrowed);
        } else {
            auto message = detail::read_message<T>(detail::data_of(borrowed), buffer);
            if (!message) return message.error();
            view.message_ = *message;
            view.decoded_ = buffer.get();
        }
        return Result<SampleView>(std::move(view));
    }

private:
    const rnet_sample* sample_ = nullptr;
    const T* message_ = nullptr;
    T* decoded_ = nullptr;
    /// The message, if it is raw bytes.
    Bytes raw_;
};

}  // namespace rnet
