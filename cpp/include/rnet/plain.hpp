// Structs that are sent as they are in memory.
//
//     struct Force {
//         double newton[3];
//         std::uint64_t time_ns;
//     };
//     RNET_PLAIN(Force, newton, time_ns)
//
// RNET_PLAIN belongs directly after the struct, in the same namespace (not in a class or function). It lists
// the fields that peers see; bytes outside of them are padding. Fields are numbers, bool, char, enums, arrays
// of these (T[n], T[n][m], std::array), and other structs that RNET_PLAIN declares. The name of the type is
// that of the struct, without its namespace; RNET_PLAIN_AS gives another one. A struct of Rust
// (#[derive(Plain)]) or Python (ctypes) with the same name and fields is compatible.
#pragma once

#include <rnet/message.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

namespace rnet {
namespace detail {

/// Names a struct, so that what RNET_PLAIN declares next to it is found.
template <class T>
struct Of {};

/// One field of a plain struct.
struct PlainField {
    const char* name;
    std::size_t offset;
    std::size_t size;
    rnet_primitive primitive;
    /// The lengths of an array, from the outside in; 0: none.
    std::uint32_t lens[4];
    std::size_t element_size;
    /// For RNET_STRUCT its type.
    Result<Type> (*struct_type)();
    /// Whether it has bools, and what makes those of an element 0 or 1.
    bool has_bools;
    void (*normalise)(void* element) noexcept;
};

/// The fields of T, which RNET_PLAIN declares next to it.
template <class T, class = void>
inline constexpr bool is_plain = false;
template <class T>
inline constexpr bool is_plain<T, std::void_t<decltype(rnet_plain_name(Of<T>()))>> = true;

/// Whether any number is a value of the enum, because its type is fixed.
template <class T, class = void>
inline constexpr bool is_fixed_enum = false;
template <class T>
inline constexpr bool is_fixed_enum<
    T, std::enable_if_t<std::is_enum_v<T>, std::void_t<decltype(T{std::underlying_type_t<T>()})>>> = true;

/// The kind of a number. A char is a byte of text.
template <class T>
constexpr rnet_primitive primitive_of() {
    if constexpr (std::is_same_v<T, bool>) {
        return RNET_BOOL;
    } else if constexpr (std::is_same_v<T, char>) {
        return RNET_U8;
    } else if constexpr (std::is_same_v<T, float>) {
        return RNET_F32;
    } else if constexpr (std::is_same_v<T, double>) {
        return RNET_F64;
    } else if constexpr (is_fixed_enum<T>) {
        return primitive_of<std::underlying_type_t<T>>();
    } else {
        static_assert(std::is_integral_v<T> && sizeof(T) <= 8 && !std::is_same_v<T, wchar_t>,
                      "rnet: a field of a plain struct is a number of at most 8 bytes, a bool, a char, an "
                      "enum of a fixed type, an array of these, or a struct that RNET_PLAIN declares");
        constexpr bool is_signed = std::is_signed_v<T>;
        if constexpr (sizeof(T) == 1) return is_signed ? RNET_I8 : RNET_U8;
        if constexpr (sizeof(T) == 2) return is_signed ? RNET_I16 : RNET_U16;
        if constexpr (sizeof(T) == 4) return is_signed ? RNET_I32 : RNET_U32;
        return is_signed ? RNET_I64 : RNET_U64;
    }
}

/// The elements of an array, and its lengths.
template <class T, std::size_t Rank>
struct Elements {
    using type = T;
    static constexpr void lens(std::uint32_t*) {}
};
template <class T, std::size_t N, std::size_t Rank>
struct Elements<T[N], Rank> {
    static_assert(Rank < 4, "rnet: an array of a plain struct has at most four dimensions");
    static_assert(N > 0 && N <= UINT32_MAX, "rnet: an array of a plain struct has 1 to 2^32 - 1 elements");
    using type = typename Elements<T, Rank + 1>::type;
    static constexpr void lens(std::uint32_t* out) {
        out[Rank] = static_cast<std::uint32_t>(N);
        Elements<T, Rank + 1>::lens(out);
    }
};
template <class T, std::size_t N, std::size_t Rank>
struct Elements<std::array<T, N>, Rank> : Elements<T[N], Rank> {};

template <class T>
void normalise_bools(void* message) noexcept;

/// A bool of another language may have any value; one of C++ must be 0 or 1.
inline void normalise_bool(void* element) noexcept {
    auto* byte = static_cast<std::uint8_t*>(element);
    *byte = *byte != 0;
}

template <class T>
constexpr bool has_bools();

template <class T>
constexpr PlainField plain_field(const char* name, std::size_t offset) {
    using Element = typename Elements<T, 0>::type;
    static_assert(sizeof(Element) > 0);
    PlainField field{name, offset, sizeof(T), RNET_STRUCT, {}, sizeof(Element), nullptr, false, nullptr};
    Elements<T, 0>::lens(field.lens);
    if constexpr (is_plain<Element>) {
        field.struct_type = &Message<Element>::type;
        field.has_bools = has_bools<Element>();
        field.normalise = &normalise_bools<Element>;
    } else {
        static_assert(!std::is_class_v<Element> && !std::is_union_v<Element>,
                      "rnet: declare the struct of this field with RNET_PLAIN, directly after it");
        field.primitive = primitive_of<Element>();
        field.has_bools = field.primitive == RNET_BOOL;
        field.normalise = &normalise_bool;
    }
    return field;
}

template <class T>
constexpr bool has_bools() {
    for (const PlainField& field : rnet_plain_fields(Of<T>())) {
        if (field.has_bools) return true;
    }
    return false;
}

template <class T>
constexpr bool has_overlaps() {
    const auto fields = rnet_plain_fields(Of<T>());
    for (std::size_t a = 0; a < fields.size(); ++a) {
        for (std::size_t b = 0; b < a; ++b) {
            if (fields[a].offset < fields[b].offset + fields[b].size &&
                fields[b].offset < fields[a].offset + fields[a].size)
                return true;
        }
    }
    return false;
}

/// The conditions on a plain struct; RNET_PLAIN asserts them.
template <class T>
constexpr bool check_plain() {
    static_assert(std::is_class_v<T>, "rnet: RNET_PLAIN declares a struct");
    static_assert(std::is_standard_layout_v<T>, "rnet: a plain struct has a standard layout");
    static_assert(std::is_trivially_copyable_v<T>, "rnet: a plain struct is trivially copyable");
    static_assert(std::is_default_constructible_v<T>, "rnet: a plain struct has a default constructor");
    static_assert(alignof(T) <= 8, "rnet: a plain struct is aligned to at most 8 bytes");
    static_assert(sizeof(T) <= (1u << 30), "rnet: a message has at most 1 GiB");
    static_assert(!has_overlaps<T>(), "rnet: two fields of RNET_PLAIN are in the same bytes");
    return true;
}

template <class T>
void normalise_bools(void* message) noexcept {
    static constexpr auto fields = rnet_plain_fields(Of<T>());
    for (const PlainField& field : fields) {
        if (!field.has_bools) continue;
        auto* at = static_cast<std::uint8_t*>(message) + field.offset;
        for (auto* end = at + field.size; at != end; at += field.element_size) field.normalise(at);
    }
}

}  // namespace detail

/// A struct that RNET_PLAIN declares. It is read where it is, unless its publisher has a shorter version of
/// the type, whose missing fields are zero, or it has bools.
template <class T>
struct Message<T, std::enable_if_t<detail::is_plain<T>>> {
    static constexpr bool in_place = false;

    static Result<Type> type() {
        constexpr auto fields = rnet_plain_fields(detail::Of<T>());
        std::vector<rnet_field> given;
        std::vector<Type> structs;
        given.reserve(fields.size());
        structs.reserve(fields.size());
        for (const detail::PlainField& field : fields) {
            const auto& lens = field.lens;
            const int primitive = field.primitive;
            given.push_back(
                {field.name, field.offset, primitive, lens[0], {lens[1], lens[2], lens[3]}, nullptr});
            if (!field.struct_type) continue;
            auto nested = field.struct_type();
            if (!nested) return nested.error();
            structs.push_back(std::move(*nested));
            given.back().struct_type = structs.back().handle();
        }
        return Type::plain(rnet_plain_name(detail::Of<T>()), sizeof(T), alignof(T),
                           Span<const rnet_field>(given.data(), given.size()));
    }
    static Bytes encode(const T& message, std::vector<std::uint8_t>&) noexcept {
        return {reinterpret_cast<const std::uint8_t*>(&message), sizeof(T)};
    }
    static const T* find(Bytes bytes) noexcept {
        const bool in_place = bytes.size() >= sizeof(T) && !detail::has_bools<T>();
        return in_place ? reinterpret_cast<const T*>(bytes.data()) : nullptr;
    }
    static Result<void> decode(Bytes bytes, T& message) noexcept {
        const std::size_t sent = bytes.size() < sizeof(T) ? bytes.size() : sizeof(T);
        auto* memory = reinterpret_cast<std::uint8_t*>(&message);
        if (sent > 0) std::memcpy(memory, bytes.data(), sent);
        std::memset(memory + sent, 0, sizeof(T) - sent);
        if constexpr (detail::has_bools<T>()) detail::normalise_bools<T>(memory);
        return {};
    }
};

}  // namespace rnet

/// Declares a struct as a plain message, with its fields. At least one, at most 128.
#define RNET_PLAIN(Struct, ...) RNET_PLAIN_AS(Struct, #Struct, __VA_ARGS__)

/// As RNET_PLAIN, with another name of the type: RNET_PLAIN_AS(Force, "robot.Force", newton, time_ns).
#define RNET_PLAIN_AS(Struct, type_name, ...)                                                               \
    [[maybe_unused]] constexpr const char* rnet_plain_name(::rnet::detail::Of<Struct>) { return type_name; } \
    [[maybe_unused]] constexpr auto rnet_plain_fields(::rnet::detail::Of<Struct>) {                          \
        using rnet_struct = Struct;                                                                         \
        return std::array{RNET_DETAIL_MAP(RNET_DETAIL_FIELD, __VA_ARGS__)};                                  \
    }                                                                                                       \
    static_assert(::rnet::detail::check_plain<Struct>(), "");

#define RNET_DETAIL_FIELD(field) \
    ::rnet::detail::plain_field<decltype(rnet_struct::field)>(#field, offsetof(rnet_struct, field)),

// RNET_DETAIL_MAP(f, a, b, c) is f(a) f(b) f(c): each step defers the next one, and RNET_DETAIL_EVAL rescans
// them.
#define RNET_DETAIL_EVAL0(...) __VA_ARGS__
#define RNET_DETAIL_EVAL1(...) RNET_DETAIL_EVAL0(RNET_DETAIL_EVAL0(RNET_DETAIL_EVAL0(__VA_ARGS__)))
#define RNET_DETAIL_EVAL2(...) RNET_DETAIL_EVAL1(RNET_DETAIL_EVAL1(RNET_DETAIL_EVAL1(__VA_ARGS__)))
#define RNET_DETAIL_EVAL3(...) RNET_DETAIL_EVAL2(RNET_DETAIL_EVAL2(RNET_DETAIL_EVAL2(__VA_ARGS__)))
#define RNET_DETAIL_EVAL(...) RNET_DETAIL_EVAL3(RNET_DETAIL_EVAL3(RNET_DETAIL_EVAL3(__VA_ARGS__)))
#define RNET_DETAIL_END(...)
#define RNET_DETAIL_OUT
#define RNET_DETAIL_GET_END2() 0, RNET_DETAIL_END
#define RNET_DETAIL_GET_END1(...) RNET_DETAIL_GET_END2
#define RNET_DETAIL_GET_END(...) RNET_DETAIL_GET_END1
#define RNET_DETAIL_NEXT0(test, next, ...) next RNET_DETAIL_OUT
#define RNET_DETAIL_NEXT1(test, next) RNET_DETAIL_NEXT0(test, next, 0)
#define RNET_DETAIL_NEXT(test, next) RNET_DETAIL_NEXT1(RNET_DETAIL_GET_END test, next)
#define RNET_DETAIL_MAP0(f, x, peek, ...) f(x) RNET_DETAIL_NEXT(peek, RNET_DETAIL_MAP1)(f, peek, __VA_ARGS__)
#define RNET_DETAIL_MAP1(f, x, peek, ...) f(x) RNET_DETAIL_NEXT(peek, RNET_DETAIL_MAP0)(f, peek, __VA_ARGS__)
#define RNET_DETAIL_MAP(f, ...) RNET_DETAIL_EVAL(RNET_DETAIL_MAP1(f, __VA_ARGS__, ()()(), ()()(), ()()(), 0))
