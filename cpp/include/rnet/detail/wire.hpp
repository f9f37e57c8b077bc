// The protobuf wire format of the built-in messages (rnet/msgs/*.hpp). A generated Fields<T> lists the
// fields of each message; this file encodes, decodes and compares messages by their lists.
//
// Decoding is safe for any bytes, also while a faulty publisher still writes to them: bytes that control
// the decoder (keys, lengths, varints) are read once, by a volatile read; contents are copied once and
// checked in the copy. It accepts the same bytes as the decoder in Rust, with the same limits.
#pragma once

#include <rnet/message.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "rnet/detail/wire.hpp copies numbers as they are in memory: little-endian"
#endif

namespace rnet::detail {

/// How an integer is encoded. Floating-point numbers are always `fixed`.
enum class Wire { varint, zigzag, fixed };

/// Number and encoding of a field.
template <std::uint32_t Number, Wire Encoding = Wire::varint>
struct Field {
    static constexpr std::uint32_t number = Number;
};

/// The fields of message T. A specialisation has:
///
///     static constexpr const char* name;                  // its full name in protobuf
///     template <class V> static void visit(V&& visit);    // visit(Field<N>(), &T::member), last field first
template <class T>
struct Fields;

template <class T, class = void>
struct IsMessage : std::false_type {};
template <class T>
struct IsMessage<T, std::void_t<decltype(Fields<T>::name)>> : std::true_type {};
template <class T>
constexpr bool is_message = IsMessage<T>::value;

template <class T>
constexpr bool is_optional = false;
template <class T>
constexpr bool is_optional<std::optional<T>> = true;
/// Text or bytes.
template <class T>
constexpr bool is_text = std::is_same_v<T, std::string> || std::is_same_v<T, std::vector<std::uint8_t>>;
template <class T>
constexpr bool is_list = false;
template <class T>
constexpr bool is_list<std::vector<T>> = !is_text<std::vector<T>>;
template <Wire E, class T>
constexpr bool is_fixed = std::is_floating_point_v<T> || (std::is_integral_v<T> && E == Wire::fixed);

/// The wire type of one value.
template <Wire E, class T>
constexpr std::uint32_t wire_type() {
    if constexpr (is_message<T> || is_text<T>) return 2;
    else if constexpr (is_fixed<E, T>) return sizeof(T) == 8 ? 1 : 5;
    else return 0;
}

// ---- Encoding, from the end to the start, so that each length is known when it is written

constexpr std::size_t varint_len(std::uint64_t value) {
    std::size_t len = 1;
    for (; value >= 0x80; value >>= 7) ++len;
    return len;
}

template <Wire E, class T>
std::uint64_t to_varint(T value) {
    if constexpr (std::is_enum_v<T> || std::is_signed_v<T>) {
        const auto wide = static_cast<std::int64_t>(value);
        if constexpr (E != Wire::zigzag) return static_cast<std::uint64_t>(wide);
        return (static_cast<std::uint64_t>(wide) << 1) ^ static_cast<std::uint64_t>(wide >> 63);
    } else {
        return value;
    }
}

/// Whether a field without presence has its default, which is not encoded. -0.0 is not the default.
template <class T>
bool is_default(const T& value) {
    if constexpr (is_text<T>) {
        return value.empty();
    } else {
        const T none{};
        return std::memcmp(&value, &none, sizeof(T)) == 0;
    }
}

/// Writes a message before `end`, or only counts its bytes.
template <bool Count>
class Encoder {
public:
    explicit Encoder(std::uint8_t* end) noexcept : end_(end) {}

    /// Number of bytes so far.
    std::size_t len() const noexcept { return len_; }

    template <class M>
    void message(const M& message) {
        Fields<M>::visit([&](auto field, auto member) { this->field(field, message.*member); });
    }

private:
    void raw(const void* data, std::size_t len) {
        len_ += len;
        if (!Count && len > 0) std::memcpy(end_ - len_, data, len);
    }
    void varint(std::uint64_t value) {
        len_ += varint_len(value);
        if constexpr (!Count) {
            std::uint8_t* to = end_ - len_;
            for (; value >= 0x80; value >>= 7) *to++ = static_cast<std::uint8_t>(value | 0x80);
            *to = static_cast<std::uint8_t>(value);
        }
    }
    void key(std::uint32_t number, std::uint32_t type) { varint(std::uint64_t{number} << 3 | type); }

    template <Wire E, class T>
    void value(const T& value) {
        if constexpr (is_message<T>) {
            const std::size_t before = len_;
            message(value);
            varint(len_ - before);
        } else if constexpr (is_text<T>) {
            raw(value.data(), value.size());
            varint(value.size());
        } else if constexpr (is_fixed<E, T>) {
            raw(&value, sizeof(T));
        } else {
            varint(to_varint<E>(value));
        }
    }

    template <std::uint32_t N, Wire E, class T>
    void field(Field<N, E>, const T& field) {
        if constexpr (is_list<T>) {
            using Element = typename T::value_type;
            constexpr bool packed = !is_message<Element> && !is_text<Element>;
            const std::size_t before = len_;
            if constexpr (packed && is_fixed<E, Element>) {
                raw(field.data(), field.size() * sizeof(Element));
            } else {
                for (auto element = field.rbegin(); element != field.rend(); ++element) {
                    value<E, Element>(*element);
                    if (!packed) key(N, 2);
                }
            }
            if (packed && !field.empty()) {
                varint(len_ - before);
                key(N, 2);
            }
        } else if constexpr (is_optional<T>) {
            if (!field) return;
            value<E>(*field);
            key(N, wire_type<E, typename T::value_type>());
        } else if (!is_default(field)) {
            value<E>(field);
            key(N, wire_type<E, T>());
        }
    }

    std::uint8_t* end_;
    std::size_t len_ = 0;
};

// ---- Decoding

/// Limits of one message: a value of two bytes on the wire takes up to hundreds in memory. They are those of
/// rnet-schema: MAX_DECODE_VALUES, MAX_DECODE_NUMBERS, DECODE_VALUES_PER_MESSAGE, MAX_SKIPPED_GROUP_DEPTH.
struct Budget {
    std::size_t values = std::size_t{1} << 22;
    std::size_t numbers = std::size_t{1} << 25;

    static constexpr std::size_t values_per_message = 8;
    static constexpr int max_group_depth = 64;

    static bool take(std::size_t& left, std::size_t count) {
        if (count > left) return false;
        left -= count;
        return true;
    }
};

inline bool is_utf8(std::string_view text) {
    for (std::size_t at = 0; at < text.size();) {
        const auto first = static_cast<unsigned char>(text[at]);
        const std::size_t len = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
        const bool starts = first < 0x80 || (first >= 0xc2 && first < 0xf5);
        if (!starts || text.size() - at < len) return false;
        std::uint32_t code = len == 1 ? first : first & (0x7fu >> len);
        for (std::size_t more = 1; more < len; ++more) {
            const auto byte = static_cast<unsigned char>(text[at + more]);
            if ((byte & 0xc0) != 0x80) return false;
            code = code << 6 | (byte & 0x3f);
        }
        const bool surrogate = code >= 0xd800 && code < 0xe000;
        if (surrogate || code > 0x10ffff) return false;
        if ((len == 3 && code < 0x800) || (len == 4 && code < 0x10000)) return false;
        at += len;
    }
    return true;
}

/// Reads the records of a message. A function that returns false has found a fault.
class Reader {
public:
    Reader(const std::uint8_t* begin, const std::uint8_t* end, Budget& budget) noexcept
        : at_(begin), end_(end), budget_(budget) {}

    /// Reads the fields of a message into one that has its defaults.
    template <class M>
    bool message(M& message) {
        while (at_ != end_) {
            std::uint32_t number = 0, type = 0;
            if (!key(number, type) || !Budget::take(budget_.values, 1)) return false;
            bool known = false, good = true;
            Fields<M>::visit([&](auto field, auto member) {
                if (field.number != number) return;
                known = true;
                good = this->field(field, message.*member, type);
            });
            // A field of a newer version is skipped.
            if (!(known ? good : skip(number, type, 0))) return false;
        }
        return true;
    }

private:
    std::size_t left() const { return static_cast<std::size_t>(end_ - at_); }

    bool varint(std::uint64_t& value) {
        std::uint64_t sum = 0;
        for (unsigned shift = 0; shift < 64 && at_ != end_; shift += 7) {
            const std::uint8_t byte = *static_cast<const volatile std::uint8_t*>(at_++);
            if (shift == 63 && byte > 1) return false;
            sum |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
            if (byte < 0x80) {
                value = sum;
                return true;
            }
        }
        return false;
    }
    bool key(std::uint32_t& number, std::uint32_t& type) {
        std::uint64_t key = 0;
        if (!varint(key) || key > 0xffffffff || key < 8) return false;
        number = static_cast<std::uint32_t>(key >> 3);
        type = static_cast<std::uint32_t>(key & 7);
        return true;
    }
    /// The next `len` bytes.
    bool take(std::uint64_t len, const std::uint8_t*& begin) {
        if (len > left()) return false;
        begin = at_;
        at_ += len;
        return true;
    }
    /// The content of a record with a length.
    bool body(std::uint32_t type, const std::uint8_t*& begin, std::size_t& len) {
        std::uint64_t given = 0;
        if (type != 2 || !varint(given) || !take(given, begin)) return false;
        len = static_cast<std::size_t>(given);
        return true;
    }
    bool skip(std::uint32_t number, std::uint32_t type, int depth) {
        const std::uint8_t* begin = nullptr;
        std::uint64_t value = 0;
        std::size_t len = 0;
        switch (type) {
        case 0: return varint(value);
        case 1: return take(8, begin);
        case 2: return body(type, begin, len);
        case 5: return take(4, begin);
        case 3: break;
        default: return false;
        }
        // A group, which ends with the key of its number and type 4.
        if (depth == Budget::max_group_depth) return false;
        std::uint32_t inner = 0;
        while (key(inner, type)) {
            if (type == 4) return inner == number;
            if (!skip(inner, type, depth + 1)) return false;
        }
        return false;
    }

    template <Wire E, class T>
    bool value(T& value, std::uint32_t type) {
        const std::uint8_t* begin = nullptr;
        std::size_t len = 0;
        if constexpr (is_message<T>) {
            if (!body(type, begin, len)) return false;
            if (!Budget::take(budget_.values, Budget::values_per_message - 1)) return false;
            return Reader(begin, begin + len, budget_).message(value);
        } else if constexpr (is_text<T>) {
            if (!body(type, begin, len)) return false;
            const auto* from = reinterpret_cast<const typename T::value_type*>(begin);
            value.assign(from, from + len);
            if constexpr (std::is_same_v<T, std::string>) return is_utf8(value);
            return true;
        } else if constexpr (is_fixed<E, T>) {
            if (type != wire_type<E, T>() || !take(sizeof(T), begin)) return false;
            std::memcpy(&value, begin, sizeof(T));
            return true;
        } else {
            return type == 0 && number<E>(value);
        }
    }
    template <Wire E, class T>
    bool number(T& value) {
        std::uint64_t raw = 0;
        if (!varint(raw)) return false;
        if constexpr (std::is_same_v<T, bool>) {
            value = raw != 0;
        } else if constexpr (E == Wire::zigzag) {
            using Unsigned = std::make_unsigned_t<T>;
            const auto bits = static_cast<Unsigned>(raw);
            value = static_cast<T>((bits >> 1) ^ (Unsigned{0} - (bits & 1)));
        } else if constexpr (std::is_enum_v<T>) {
            value = static_cast<T>(static_cast<std::int32_t>(raw));
        } else {
            value = static_cast<T>(raw);
        }
        return true;
    }

    template <std::uint32_t N, Wire E, class T>
    bool field(Field<N, E>, T& field, std::uint32_t type) {
        if constexpr (is_list<T>) {
            using Element = typename T::value_type;
            if constexpr (is_message<Element> || is_text<Element>) {
                return value<E>(field.emplace_back(), type);
            } else {
                return type == 2 ? packed<E>(field) : one<E>(field, type);
            }
        } else if constexpr (is_optional<T>) {
            return value<E>(field ? *field : field.emplace(), type);
        } else {
            return value<E>(field, type);
        }
    }
    /// One number of a list that is not packed.
    template <Wire E, class T>
    bool one(std::vector<T>& list, std::uint32_t type) {
        T element{};
        if (!value<E>(element, type)) return false;
        list.push_back(element);
        return true;
    }
    template <Wire E, class T>
    bool packed(std::vector<T>& list) {
        const std::uint8_t* begin = nullptr;
        std::size_t len = 0;
        if (!body(2, begin, len)) return false;
        if constexpr (is_fixed<E, T>) {
            const std::size_t count = len / sizeof(T), before = list.size();
            if (len % sizeof(T) != 0 || !Budget::take(budget_.numbers, count)) return false;
            list.resize(before + count);
            if (count > 0) std::memcpy(list.data() + before, begin, len);
            return true;
        } else {
            Reader numbers(begin, begin + len, budget_);
            while (numbers.at_ != numbers.end_) {
                T element{};
                if (!numbers.template number<E>(element) || !Budget::take(budget_.numbers, 1)) return false;
                list.push_back(element);
            }
            return true;
        }
    }

    const std::uint8_t* at_;
    const std::uint8_t* end_;
    Budget& budget_;
};

/// Sets the defaults, and keeps the memory of lists and texts.
template <class M>
void clear(M& message) {
    Fields<M>::visit([&](auto, auto member) {
        using T = std::decay_t<decltype(message.*member)>;
        if constexpr (is_list<T> || is_text<T>) (message.*member).clear();
        else message.*member = T{};
    });
}

template <class M>
bool decode(Bytes bytes, M& message) {
    Budget budget;
    clear(message);
    return Reader(bytes.begin(), bytes.end(), budget).message(message);
}

template <class M>
using IfMessage = std::enable_if_t<is_message<M>>;

}  // namespace rnet::detail

namespace rnet {

/// A built-in message. Texts must be UTF-8. After a failed decode(), the message has some of the fields.
template <class T>
struct Message<T, detail::IfMessage<T>> {
    static constexpr bool in_place = false;

    static Result<Type> type() { return Type::builtin(detail::Fields<T>::name); }
    static Bytes encode(const T& message, std::vector<std::uint8_t>& buffer) {
        detail::Encoder<true> counter(nullptr);
        counter.message(message);
        const std::size_t len = counter.len();
        if (buffer.size() < len) buffer.resize(len);
        detail::Encoder<false>(buffer.data() + len).message(message);
        return {buffer.data(), len};
    }
    static Result<void> decode(Bytes bytes, T& message) {
#if RNET_HAS_EXCEPTIONS
        try {
            if (detail::decode(bytes, message)) return {};
        } catch (const std::bad_alloc&) {
            return Error(Code::out_of_memory);
        }
#else
        if (detail::decode(bytes, message)) return {};
#endif
        return Error(Code::malformed, std::string("these bytes are not a ") + detail::Fields<T>::name);
    }
};

namespace msgs {

template <class T, class = detail::IfMessage<T>>
bool operator==(const T& left, const T& right) {
    bool same = true;
    detail::Fields<T>::visit([&](auto, auto member) { same = same && left.*member == right.*member; });
    return same;
}
template <class T, class = detail::IfMessage<T>>
bool operator!=(const T& left, const T& right) {
    return !(left == right);
}

namespace foxglove {
using msgs::operator==;
using msgs::operator!=;
}  // namespace foxglove
}  // namespace msgs
}  // namespace rnet
