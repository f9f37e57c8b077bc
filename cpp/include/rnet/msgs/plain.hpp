// Images, point clouds and tensors: a header of a fixed layout, and data that is read and written in place.
//
//     auto images = node.publisher<rnet::msgs::Image>("/camera");
//     auto image = images.loan_with({640, 480, "bgr8", 640 * 3});
//     grab(image.data());
//     image.send();
//
//     for (auto& image : node.subscriber<rnet::msgs::Image>("/camera")) show(image->data, image->row_stride);
//
// The data of a received message is a view, valid as long as its sample. docs/design/plain-messages.md
// describes the fields.
#pragma once

#include <rnet/publisher.hpp>

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace rnet {
namespace msgs::plain {

/// A text of at most N bytes, padded with zeros.
template <std::size_t N>
class Text {
public:
    Text() = default;
    /// Fails with Code::bad_value if it is longer.
    Text(std::string_view text) {
        if (text.size() > N) {
            detail::raise(Error(Code::bad_value, "text of " + std::to_string(text.size()) + " bytes, \"" +
                                                     std::string(text) + "\", exceeds " + std::to_string(N)));
        }
        std::memcpy(bytes_, text.data(), text.size());
    }
    Text(const char* text) : Text(std::string_view(text)) {}
    operator std::string_view() const noexcept {
        const void* end = std::memchr(bytes_, 0, N);
        return {bytes_, end ? static_cast<std::size_t>(static_cast<const char*>(end) - bytes_) : N};
    }
    friend bool operator==(const Text& text, std::string_view other) { return std::string_view(text) == other; }

private:
    char bytes_[N] = {};
};

/// The type of a number.
enum class NumberType : std::uint32_t { u8 = 1, i8, u16, i16, u32, i32, f32, f64 };

template <class T>
constexpr NumberType number_type() {
    static_assert(std::is_arithmetic_v<T> && !std::is_same_v<T, bool> && (sizeof(T) <= 4 || std::is_same_v<T, double>),
                  "rnet: the numbers of points are integers of at most 4 bytes, float and double");
    if constexpr (std::is_floating_point_v<T>) return sizeof(T) == 4 ? NumberType::f32 : NumberType::f64;
    constexpr bool is_signed = std::is_signed_v<T>;
    if constexpr (sizeof(T) == 1) return is_signed ? NumberType::i8 : NumberType::u8;
    if constexpr (sizeof(T) == 2) return is_signed ? NumberType::i16 : NumberType::u16;
    return is_signed ? NumberType::i32 : NumberType::u32;
}

/// What the headers of this file begin with.
struct Header {
    /// ns since 1970 UTC; 0 if unknown.
    std::int64_t timestamp_ns = 0;
    /// From the start of the message to its data, and the length of the data, in bytes.
    std::uint64_t data_offset = 0;
    std::uint64_t data_len = 0;
    std::uint64_t reserved0 = 0;
    /// The coordinate frame (REP-105).
    Text<64> frame_id;
};

/// The header of an image, whose rows follow.
struct ImageHeader : Header {
    static constexpr const char* type_name = "rnet.msgs.Image";

    /// Pixels in a row, and rows.
    std::uint32_t width = 0, height = 0;
    /// From the start of a row to the start of the next, in bytes.
    std::uint32_t row_stride = 0;
    std::uint32_t reserved1 = 0;
    /// As in foxglove.RawImage: "rgb8", "bgr8", "mono8", …
    Text<32> encoding;
    std::uint8_t reserved2[48] = {};

    ImageHeader() = default;
    ImageHeader(std::uint32_t width, std::uint32_t height, std::string_view encoding, std::uint32_t row_stride)
        : width(width), height(height), row_stride(row_stride), encoding(encoding) {
        data_offset = sizeof(ImageHeader);
        data_len = std::uint64_t{height} * row_stride;
    }
};
static_assert(sizeof(ImageHeader) == 192);

/// A field of the points of a cloud.
struct PointField {
    Text<32> name;
    /// From the start of a point, in bytes.
    std::uint32_t offset = 0;
    NumberType type = NumberType::f32;
};

/// The header of a point cloud, whose points follow.
struct PointCloudHeader : Header {
    static constexpr const char* type_name = "rnet.msgs.PointCloud";
    static constexpr std::size_t max_fields = 16;

    /// Points in a row, and rows: 1 for an unordered cloud.
    std::uint32_t width = 0, height = 0;
    /// From the start of a point, or of a row, to the start of the next, in bytes.
    std::uint32_t point_stride = 0, row_stride = 0;
    /// Number of `fields` in use.
    std::uint32_t field_count = 0;
    /// Bit 0: some points are NaN.
    std::uint32_t flags = 0;
    std::uint64_t reserved1 = 0;
    /// Where the origin of the points is in `frame_id`, in m, and its rotation, x y z w; all zeros for none.
    double position[3] = {}, orientation[4] = {};
    std::uint64_t reserved2 = 0;
    PointField fields[max_fields] = {};

    PointCloudHeader() = default;
    /// Rows without gaps. Fails with Code::bad_value for more than 16 fields.
    PointCloudHeader(std::uint32_t width, std::uint32_t height, std::uint32_t point_stride,
                     std::initializer_list<PointField> given)
        : width(width), height(height), point_stride(point_stride), row_stride(width * point_stride) {
        if (given.size() > max_fields) {
            detail::raise(Error(Code::bad_value, std::to_string(given.size()) + " fields; a point has at most 16"));
        }
        for (const PointField& field : given) fields[field_count++] = field;
        data_offset = sizeof(PointCloudHeader);
        data_len = std::uint64_t{height} * row_stride;
    }
};
static_assert(sizeof(PointCloudHeader) == 832);

/// The header of a tensor, whose elements follow.
struct TensorHeader : Header {
    static constexpr const char* type_name = "rnet.msgs.Tensor";
    static constexpr std::size_t max_dims = 8;

    /// As in DLPack: 0 signed, 1 unsigned, 2 float, 4 bfloat, 5 complex, 6 bool; the bits of an element; 1.
    std::uint8_t dtype_code = 0, dtype_bits = 0;
    std::uint16_t dtype_lanes = 1;
    /// Number of dimensions, the elements along each, and the bytes from one to the next.
    std::uint32_t ndim = 0;
    std::int64_t shape[max_dims] = {}, strides[max_dims] = {};
    std::uint64_t reserved1[3] = {};

    TensorHeader() = default;
    /// Elements without gaps, of which the last dimension is contiguous. Fails with Code::bad_value for more
    /// than 8 dimensions.
    template <class T>
    static TensorHeader of(std::initializer_list<std::int64_t> shape) {
        static_assert(std::is_arithmetic_v<T>, "rnet: the elements of a tensor are numbers");
        if (shape.size() > max_dims) {
            detail::raise(Error(Code::bad_value, std::to_string(shape.size()) + " dimensions; a tensor has at most 8"));
        }
        TensorHeader made;
        made.dtype_code = std::is_same_v<T, bool> ? 6 : std::is_floating_point_v<T> ? 2 : std::is_unsigned_v<T>;
        made.dtype_bits = sizeof(T) * 8;
        for (std::int64_t len : shape) made.shape[made.ndim++] = len;
        made.data_offset = sizeof(TensorHeader);
        made.data_len = sizeof(T);
        std::int64_t stride = sizeof(T);
        for (std::size_t at = made.ndim; at-- > 0;) {
            made.strides[at] = stride;
            made.data_len *= static_cast<std::uint64_t>(made.shape[at]);
            if (made.shape[at] > 0) stride *= made.shape[at];
        }
        return made;
    }
};
static_assert(sizeof(TensorHeader) == 256);

/// A header with its data, which somebody else owns.
template <class H>
struct WithData : H {
    using Header = H;
    Bytes data;

    WithData() = default;
    WithData(const H& header, Bytes data) : H(header), data(data) {}
};

using Image = WithData<ImageHeader>;
using Tensor = WithData<TensorHeader>;

/// One field of all points, where they are: x[0], x[1], …
template <class T>
class PointValues {
public:
    PointValues() = default;
    PointValues(const PointCloudHeader& cloud, Bytes data, std::uint32_t offset)
        : first_(data.data() + offset), width_(cloud.width), point_stride_(cloud.point_stride),
          row_stride_(cloud.row_stride), size_(std::size_t{cloud.width} * cloud.height) {}
    /// Number of points; 0 if the cloud has no such field.
    std::size_t size() const noexcept { return size_; }
    T operator[](std::size_t at) const noexcept {
        T value;
        std::memcpy(&value, first_ + at / width_ * row_stride_ + at % width_ * point_stride_, sizeof value);
        return value;
    }

private:
    const std::uint8_t* first_ = nullptr;
    std::size_t width_ = 1, point_stride_ = 0, row_stride_ = 0, size_ = 0;
};

struct PointCloud : WithData<PointCloudHeader> {
    using WithData::WithData;

    /// The values of a field. Empty if the cloud has no field of this name with numbers of type T.
    template <class T>
    PointValues<T> values(std::string_view name) const {
        for (std::size_t at = 0; at < field_count && at < max_fields; ++at) {
            const PointField& field = fields[at];
            if (field.name == name && field.type == number_type<T>()) return {*this, data, field.offset};
        }
        return {};
    }
};

}  // namespace msgs::plain

namespace msgs {
using plain::Image;
using plain::PointCloud;
using plain::Tensor;
}  // namespace msgs

namespace detail {

/// Copies the header of a message, checks it, and finds the data.
template <class Header>
Result<Bytes> split_message(Bytes message, Header& header) {
    static const auto type = Type::builtin(Header::type_name);
    if (!type) return type.error();
    rnet_bytes data{};
    rnet_error* error = nullptr;
    const rnet_code code = rnet_message_split(type->handle(), {message.data(), message.size()}, &header,
                                              sizeof header, &data, &error);
    if (code != RNET_OK) return Error(static_cast<Code>(code), error);
    return Bytes(data.data, data.len);
}

}  // namespace detail

template <class T>
struct Message<T, std::enable_if_t<std::is_base_of_v<msgs::plain::WithData<typename T::Header>, T>>> {
    static constexpr bool in_place = false;
    static constexpr bool has_data = true;

    static Result<Type> type() { return Type::builtin(T::type_name); }
    /// Where the data is follows from the data, and not from what the header says.
    static Bytes encode(const T& message, std::vector<std::uint8_t>& buffer) {
        typename T::Header header = message;
        header.data_offset = sizeof header;
        header.data_len = message.data.size();
        const auto* bytes = reinterpret_cast<const std::uint8_t*>(&header);
        buffer.assign(bytes, bytes + sizeof header);
        buffer.insert(buffer.end(), message.data.begin(), message.data.end());
        return buffer;
    }
    static Result<void> decode(Bytes bytes, T& message) {
        auto data = detail::split_message<typename T::Header>(bytes, message);
        if (!data) return data.error();
        message.data = *data;
        return {};
    }
};

/// Memory for a message that its data follows: made by Publisher::loan_with(). A loan that is not sent sends
/// nothing.
template <class T>
class DataLoan : public detail::LoanHandle {
    using Header = typename T::Header;

public:
    DataLoan(rnet_loan* loan, const Header& header) noexcept : LoanHandle(loan), header_(header) {}

    /// The header that is sent.
    const Header& header() const noexcept { return header_; }
    /// Sets the time of the content, in ns since 1970 UTC.
    void set_timestamp_ns(std::int64_t timestamp_ns) noexcept { header_.timestamp_ns = timestamp_ns; }
    /// The data, with arbitrary values; empty after send().
    Span<std::uint8_t> data() && = delete;  // It would end with the loan: keep that in a variable.
    Span<std::uint8_t> data() const& noexcept {
        const auto all = memory();
        return header_.data_offset <= all.size() ? all.subspan(header_.data_offset) : Span<std::uint8_t>();
    }

    /// Sends the message without a copy. On an error, such as Code::bad_value for an invalid header, it keeps
    /// its content, and may be sent again.
    void send(const Meta& meta = {}) { send(meta, std::nothrow).value(); }
    Result<void> send(std::nothrow_t) { return send({}, std::nothrow); }
    Result<void> send(const Meta& meta, std::nothrow_t) {
        const auto all = memory();
        if (all.size() >= sizeof header_ && header_.data_offset <= all.size()) {
            std::memset(all.data(), 0, header_.data_offset);
            std::memcpy(all.data(), static_cast<const void*>(&header_), sizeof header_);
        }
        if (all.data()) {
            Header checked;
            auto data = detail::split_message({all.data(), all.size()}, checked);
            if (!data) return data.error();
        }
        return LoanHandle::send(meta, std::nothrow);
    }

private:
    Header header_;
};

}  // namespace rnet
