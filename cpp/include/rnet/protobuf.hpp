// Messages of classes that protoc generates. Needs libprotobuf, with descriptors (not optimize_for =
// LITE_RUNTIME).
#pragma once

#include <rnet/message.hpp>

#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/message.h>

#include <climits>
#include <cstdint>
#include <set>
#include <string>
#include <type_traits>
#include <vector>

namespace rnet {
namespace detail {

/// Adds a file to a descriptor set, after the files that it imports.
inline void add_file(const google::protobuf::FileDescriptor* file, google::protobuf::FileDescriptorSet& set,
                     std::set<const google::protobuf::FileDescriptor*>& added) {
    if (!added.insert(file).second) return;
    for (int i = 0; i < file->dependency_count(); ++i) add_file(file->dependency(i), set, added);
    file->CopyTo(set.add_file());
}

}  // namespace detail

template <class T>
struct Message<T, std::enable_if_t<std::is_base_of_v<google::protobuf::MessageLite, T>>> {
    static_assert(std::is_base_of_v<google::protobuf::Message, T>,
                  "rnet needs the descriptors of protobuf messages: remove optimize_for = LITE_RUNTIME");
    static constexpr bool in_place = false;

    static Result<Type> type() {
        google::protobuf::FileDescriptorSet set;
        std::set<const google::protobuf::FileDescriptor*> added;
        detail::add_file(T::descriptor()->file(), set, added);
        return Type::protobuf(bytes_of(set.SerializeAsString()), name().c_str());
    }
    static Bytes encode(const T& message, std::vector<std::uint8_t>& buffer) {
        const std::size_t len = message.ByteSizeLong();
        // Too long for protobuf and for rnet, which reports it.
        if (len > INT_MAX) return {nullptr, len};
        buffer.resize(len);
        message.SerializeWithCachedSizesToArray(buffer.data());
        return {buffer.data(), len};
    }
    static Result<void> decode(Bytes bytes, T& message) {
        detail::Scratch scratch;
        if (bytes.size() > RNET_MAX_INLINE_LEN_BYTES) {
            scratch.buffer().assign(bytes.begin(), bytes.end());
            bytes = scratch.buffer();
        }
        if (message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return {};
        return Error(Code::malformed, "these bytes are not a message of " + name());
    }

private:
    static std::string name() { return std::string(T::descriptor()->full_name()); }
};

}  // namespace rnet
