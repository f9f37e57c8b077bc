// Types of messages: what can be sent, and how.
#pragma once

#include <rnet/error.hpp>
#include <rnet/span.hpp>

#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace rnet {

/// The type of messages as declared to peers.
class Type {
public:
    /// Raw bytes.
    Type() = default;
    /// Takes over an object of the C API.
    explicit Type(rnet_type* handle) noexcept : handle_(handle) {}

    /// A built-in message: "foxglove.LaserScan".
    static Result<Type> builtin(const char* name) {
        return make(rnet_type_builtin, name);
    }
    /// The type `name` of a serialized google.protobuf.FileDescriptorSet.
    static Result<Type> protobuf(Bytes descriptor_set, const char* name) {
        const rnet_bytes set{descriptor_set.data(), descriptor_set.size()};
        return make(rnet_type_protobuf, set, name);
    }
    /// A struct that is sent as it is in memory. See RNET_PLAIN in rnet/plain.hpp.
    static Result<Type> plain(const char* name, std::size_t size, std::size_t align,
                              Span<const rnet_field> fields) {
        return make(rnet_type_plain, name, size, align, fields.data(), fields.size());
    }

    /// Calls a function of the C API that makes a type.
    template <class F, class... Args>
    static Result<Type> make(F&& function, Args&&... args) {
        return detail::made_by<Type>(function, args...);
    }

    /// Its name; empty for raw bytes.
    std::string_view name() const& noexcept { return rnet_type_name(handle_.get()); }
    std::string name() && { return std::string(name()); }
    /// The object of the C API; null for raw bytes.
    const rnet_type* handle() const noexcept { return handle_.get(); }

private:
    detail::Handle<rnet_type, rnet_type_free> handle_;
};

/// How messages of type T are sent and received. Specialised for Bytes, for structs that RNET_PLAIN declares
/// (rnet/plain.hpp), for the built-in messages (rnet/msgs/*.hpp) and for classes that protoc generates
/// (rnet/protobuf.hpp). A specialisation has:
///
///     static Result<Type> type();              // made at each call; endpoints call it once
///     static Bytes encode(const T&, std::vector<std::uint8_t>& buffer);   // in its memory, or in the buffer
///     static Result<void> decode(Bytes, T&);   // replaces the whole content of T
///     static constexpr bool in_place;          // whether T is a view of the message
///     static T view(Bytes);                    // if in_place: the view
///     static const T* find(Bytes);             // optional: the message in these bytes; null to decode them
///     static constexpr bool has_data = true;   // optional: T refers to the bytes, which are kept with it
///
/// decode() may be given the memory of the publisher, which a faulty process can change meanwhile: a decoder
/// that reads a byte twice copies messages of more than RNET_MAX_INLINE_LEN_BYTES first.
template <class T, class Enable = void>
struct Message {
    static_assert(sizeof(T) == 0,
                  "rnet cannot send this type: use rnet::Bytes, declare it with RNET_PLAIN, include the header "
                  "of a built-in message, or include rnet/protobuf.hpp for classes of protoc");
};

/// Raw bytes, and messages of any type without decoding.
template <>
struct Message<Bytes> {
    static constexpr bool in_place = true;
    static Result<Type> type() { return Type(); }
    static Bytes encode(const Bytes& message, std::vector<std::uint8_t>&) noexcept { return message; }
    static Bytes view(Bytes bytes) noexcept { return bytes; }
    static Result<void> decode(Bytes bytes, Bytes& message) noexcept {
        message = bytes;
        return {};
    }
};

/// The bytes of a message, for options such as a last will.
template <class T>
std::vector<std::uint8_t> encoded(const T& message) {
    std::vector<std::uint8_t> buffer;
    const Bytes bytes = Message<T>::encode(message, buffer);
    return {bytes.begin(), bytes.end()};
}
/// The bytes of a text.
inline std::vector<std::uint8_t> encoded(std::string_view text) { return encoded(bytes_of(text)); }
inline std::vector<std::uint8_t> encoded(const char* text) { return encoded(bytes_of(text)); }

namespace detail {

/// Memory for encoding and decoding that the thread reuses.
class Scratch {
public:
    std::vector<std::uint8_t>& buffer() noexcept { return *buffer_; }
    Scratch() : buffer_(&of_thread()) {}
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;
    ~Scratch() {
        if (buffer_->capacity() > reused_len_bytes) std::vector<std::uint8_t>().swap(*buffer_);
    }

private:
    static constexpr std::size_t reused_len_bytes = 256 << 10;
    static std::vector<std::uint8_t>& of_thread() {
        thread_local std::vector<std::uint8_t> buffer;
        return buffer;
    }
    std::vector<std::uint8_t>* buffer_;
};

/// Memory for a type that is sent as it is in memory: none.
struct NoScratch {
    std::vector<std::uint8_t> none;
    std::vector<std::uint8_t>& buffer() noexcept { return none; }
};

/// Whether messages of type T can be read where they are.
template <class T, class = void>
inline constexpr bool has_find = false;
template <class T>
inline constexpr bool has_find<T, std::void_t<decltype(Message<T>::find(Bytes()))>> = true;

/// Whether T refers to data in the bytes of the message.
template <class T, class = void>
inline constexpr bool has_data = false;
template <class T>
inline constexpr bool has_data<T, std::void_t<decltype(Message<T>::has_data)>> = true;

/// Whether messages of type T are received as they are in memory.
template <class T>
inline constexpr bool is_in_memory = Message<T>::in_place || has_find<T> || has_data<T>;

template <class T>
using EncodeBuffer = std::conditional_t<is_in_memory<T> && !has_data<T>, NoScratch, Scratch>;

}  // namespace detail

}  // namespace rnet
