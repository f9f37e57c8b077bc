// A view of contiguous elements: std::span for C++17.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <utility>
#if __has_include(<span>) && __cplusplus >= 202002L
#include <span>
#endif

namespace rnet {

/// A view of `size()` elements that somebody else owns.
template <class T>
class Span {
public:
    constexpr Span() noexcept = default;
    constexpr Span(T* data, std::size_t size) noexcept : data_(data), size_(size) {}
    template <std::size_t N>
    constexpr Span(T (&array)[N]) noexcept : data_(array), size_(N) {}
    /// Of a container of the same elements: std::vector, std::array, std::span.
    template <class C,
              class = std::enable_if_t<std::is_convertible_v<decltype(std::declval<C&>().data()), T*>>>
    constexpr Span(C&& container) noexcept : data_(container.data()), size_(container.size()) {}

    constexpr T* data() const noexcept { return data_; }
    constexpr std::size_t size() const noexcept { return size_; }
    constexpr bool empty() const noexcept { return size_ == 0; }
    constexpr T* begin() const noexcept { return data_; }
    constexpr T* end() const noexcept { return data_ + size_; }
    constexpr T& operator[](std::size_t at) const { return data_[at]; }
    constexpr Span subspan(std::size_t from) const { return {data_ + from, size_ - from}; }
    constexpr Span first(std::size_t count) const { return {data_, count}; }

#if defined(__cpp_lib_span)
    constexpr operator std::span<T>() const noexcept { return {data_, size_}; }
#endif

private:
    T* data_ = nullptr;
    std::size_t size_ = 0;
};

/// The bytes of a message.
using Bytes = Span<const std::uint8_t>;

/// The bytes of a text, without a NUL.
inline Bytes bytes_of(std::string_view text) noexcept {
    return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}
/// Bytes as text.
inline std::string_view text_of(Bytes bytes) noexcept {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace rnet
