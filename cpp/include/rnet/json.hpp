// Messages as JSON, for tools that do not know a type when they are compiled:
//
//     std::string text = rnet::to_json(type, sample.data());
//     publisher.send(rnet::from_json(type, R"({"x": 1.5})"));
#pragma once

#include <rnet/message.hpp>

#include <cstdint>
#include <new>
#include <string>
#include <string_view>
#include <vector>

namespace rnet {
namespace detail {

using Buffer = Handle<rnet_buffer, rnet_buffer_free>;

/// The bytes of a buffer that a function of the C API makes, as a container of C++.
template <class Container, class F, class... Args>
Result<Container> contents_of(F&& function, Args&&... args) {
    auto made = result_of<rnet_buffer*>(function, args...);
    if (!made) return made.error();
    const Buffer buffer(*made);
    const rnet_bytes bytes = rnet_buffer_bytes(buffer.get());
    return Container(bytes.data, bytes.data + bytes.len);
}

}  // namespace detail

/// The description of a type as JSON: the fields of a plain type, the name of a protobuf type.
inline Result<std::string> to_json(const Type& type, std::nothrow_t) {
    return detail::contents_of<std::string>(rnet_type_to_json, type.handle());
}
inline std::string to_json(const Type& type) { return to_json(type, std::nothrow).value(); }

/// A message as JSON. Fails with Code::bad_value if the bytes are not a message of the type, or the type is
/// raw bytes.
inline Result<std::string> to_json(const Type& type, Bytes message, std::nothrow_t) {
    const rnet_bytes bytes{message.data(), message.size()};
    return detail::contents_of<std::string>(rnet_message_to_json, type.handle(), bytes);
}
inline std::string to_json(const Type& type, Bytes message) {
    return to_json(type, message, std::nothrow).value();
}

/// The bytes of a message that JSON describes. Absent fields are zero. Fails with Code::bad_value, which
/// names the field.
inline Result<std::vector<std::uint8_t>> from_json(const Type& type, std::string_view json, std::nothrow_t) {
    return detail::contents_of<std::vector<std::uint8_t>>(rnet_message_from_json, type.handle(),
                                                          detail::CText(json));
}
inline std::vector<std::uint8_t> from_json(const Type& type, std::string_view json) {
    return from_json(type, json, std::nothrow).value();
}

}  // namespace rnet
