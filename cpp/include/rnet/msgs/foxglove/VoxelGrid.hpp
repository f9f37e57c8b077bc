// Written from foxglove/VoxelGrid.proto by `cargo xtask cpp-messages --write`; do not edit.
#pragma once

#include <rnet/detail/wire.hpp>
#include <rnet/msgs/foxglove/PackedElementField.hpp>
#include <rnet/msgs/foxglove/Pose.hpp>
#include <rnet/msgs/foxglove/Vector3.hpp>
#include <rnet/msgs/time.hpp>

namespace rnet::msgs::foxglove {

/// A map of cells in space. Cell (column c, row r, slice s) starts at byte s * slice_stride + r * row_stride
/// + c * cell_stride.
struct VoxelGrid {
    /// When the map was made, UTC.
    std::optional<Timestamp> timestamp{};
    /// Frame in which it is given (REP-105), for example `base_link`.
    std::string frame_id{};
    /// Corner of the first cell; columns go along x, rows along y, slices along z.
    std::optional<Pose> pose{};
    /// Rows in a slice. Unit: 1
    std::uint32_t row_count = 0;
    /// Cells in a row. Unit: 1
    std::uint32_t column_count = 0;
    /// Edges of a cell along x, y and z. Unit: m
    std::optional<Vector3> cell_size{};
    /// From the start of one slice to that of the next. Unit: B
    std::uint32_t slice_stride = 0;
    /// From the start of one row to that of the next. Unit: B
    std::uint32_t row_stride = 0;
    /// From the start of one cell to that of the next. Unit: B
    std::uint32_t cell_stride = 0;
    /// What a cell is made of.
    std::vector<PackedElementField> fields{};
    /// The cells, slice by slice, row by row.
    std::vector<std::uint8_t> data{};
};

}  // namespace rnet::msgs::foxglove

namespace rnet::msgs {
using foxglove::VoxelGrid;
}

namespace rnet::detail {

template <>
struct Fields<msgs::foxglove::VoxelGrid> {
    static constexpr const char* name = "foxglove.VoxelGrid";
    template <class V>
    static void visit(V&& visit) {
        using M = msgs::foxglove::VoxelGrid;
        visit(Field<11>(), &M::data);
        visit(Field<10>(), &M::fields);
        visit(Field<9, Wire::fixed>(), &M::cell_stride);
        visit(Field<8, Wire::fixed>(), &M::row_stride);
        visit(Field<7, Wire::fixed>(), &M::slice_stride);
        visit(Field<6>(), &M::cell_size);
        visit(Field<5, Wire::fixed>(), &M::column_count);
        visit(Field<4, Wire::fixed>(), &M::row_count);
        visit(Field<3>(), &M::pose);
        visit(Field<2>(), &M::frame_id);
        visit(Field<1>(), &M::timestamp);
    }
};

}  // namespace rnet::detail
