// Written from foxglove/Grid.proto by `cargo xtask cpp-messages --write`; do not edit.
#pragma once

#include <rnet/detail/wire.hpp>
#include <rnet/msgs/foxglove/PackedElementField.hpp>
#include <rnet/msgs/foxglove/Pose.hpp>
#include <rnet/msgs/foxglove/Vector2.hpp>
#include <rnet/msgs/time.hpp>

namespace rnet::msgs::foxglove {

/// A map of square or oblong cells in a plane: occupancy, costs, heights. Cell (column c, row r) starts at
/// byte r * row_stride + c * cell_stride.
struct Grid {
    /// When the map was made, UTC.
    std::optional<Timestamp> timestamp{};
    /// Frame in which it is given (REP-105), for example `base_link`.
    std::string frame_id{};
    /// Corner of the first cell; columns go along x, rows along y.
    std::optional<Pose> pose{};
    /// Cells in a row. Unit: 1
    std::uint32_t column_count = 0;
    /// Edges of a cell along x and y. Unit: m
    std::optional<Vector2> cell_size{};
    /// From the start of one row to that of the next. Unit: B
    std::uint32_t row_stride = 0;
    /// From the start of one cell to that of the next. Unit: B
    std::uint32_t cell_stride = 0;
    /// What a cell is made of.
    std::vector<PackedElementField> fields{};
    /// The cells, row by row.
    std::vector<std::uint8_t> data{};
};

}  // namespace rnet::msgs::foxglove

namespace rnet::msgs {
using foxglove::Grid;
}

namespace rnet::detail {

template <>
struct Fields<msgs::foxglove::Grid> {
    static constexpr const char* name = "foxglove.Grid";
    template <class V>
    static void visit(V&& visit) {
        using M = msgs::foxglove::Grid;
        visit(Field<9>(), &M::data);
        visit(Field<8>(), &M::fields);
        visit(Field<7, Wire::fixed>(), &M::cell_stride);
        visit(Field<6, Wire::fixed>(), &M::row_stride);
        visit(Field<5>(), &M::cell_size);
        visit(Field<4, Wire::fixed>(), &M::column_count);
        visit(Field<3>(), &M::pose);
        visit(Field<2>(), &M::frame_id);
        visit(Field<1>(), &M::timestamp);
    }
};

}  // namespace rnet::detail
