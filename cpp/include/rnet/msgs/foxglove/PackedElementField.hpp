// Written from foxglove/PackedElementField.proto by `cargo xtask cpp-messages --write`; do not edit.
#pragma once

#include <rnet/detail/wire.hpp>

namespace rnet::msgs::foxglove {

/// A number of a fixed size.
enum class PackedElementField_NumericType : std::int32_t {
    /// Not said; the field cannot be read.
    unknown = 0,
    /// Unsigned, 1 byte.
    uint8 = 1,
    /// Signed, 1 byte.
    int8 = 2,
    /// Unsigned, 2 bytes.
    uint16 = 3,
    /// Signed, 2 bytes.
    int16 = 4,
    /// Unsigned, 4 bytes.
    uint32 = 5,
    /// Signed, 4 bytes.
    int32 = 6,
    /// IEEE 754 single, 4 bytes.
    float32 = 7,
    /// IEEE 754 double, 8 bytes.
    float64 = 8,
};

/// One number within each element of a packed array: one of a point's coordinates, or a cell's height.
struct PackedElementField {
    using NumericType = PackedElementField_NumericType;

    /// Its name. Known ones: `x`, `y`, `z`, `intensity`, `red`, `green`, `blue`, `alpha`.
    std::string name{};
    /// Where the number starts within the element. Unit: B
    std::uint32_t offset = 0;
    /// What number it is; little-endian.
    NumericType type{};
};

}  // namespace rnet::msgs::foxglove

namespace rnet::msgs {
using foxglove::PackedElementField;
}

namespace rnet::detail {

template <>
struct Fields<msgs::foxglove::PackedElementField> {
    static constexpr const char* name = "foxglove.PackedElementField";
    template <class V>
    static void visit(V&& visit) {
        using M = msgs::foxglove::PackedElementField;
        visit(Field<3>(), &M::type);
        visit(Field<2, Wire::fixed>(), &M::offset);
        visit(Field<1>(), &M::name);
    }
};

}  // namespace rnet::detail
