// Images, point clouds and tensors.
#include "topics.hpp"

#include <rnet/json.hpp>
#include <rnet/msgs/plain.hpp>
#include <rnet/plain.hpp>

#include <cstring>
#include <regex>
#include <stdexcept>

namespace plain = rnet::msgs::plain;
using plain::Image;
using plain::NumberType;
using plain::PointCloud;
using plain::Tensor;

namespace {

/// The offset of a field of the library's description of a type.
std::size_t offset_of(const char* type, const std::string& field) {
    const std::string json = rnet::to_json(rnet::Type::builtin(type).value());
    std::smatch found;
    const std::regex pattern("\"name\":\"" + field + "\",\"offset\":(\\d+)");
    if (!std::regex_search(json, found, pattern)) throw std::runtime_error(field + " is not in " + json);
    return std::stoul(found[1]);
}

template <class Header, class Owner, class Field>
std::size_t offset_in(Field Owner::*field) {
    static const Header header{};
    const auto* at = reinterpret_cast<const char*>(&(header.*field));
    return static_cast<std::size_t>(at - reinterpret_cast<const char*>(&header));
}

template <class Header>
void check_common_fields() {
    CHECK(offset_of(Header::type_name, "timestamp_ns") == offset_in<Header>(&Header::timestamp_ns));
    CHECK(offset_of(Header::type_name, "data_offset") == offset_in<Header>(&Header::data_offset));
    CHECK(offset_of(Header::type_name, "data_len") == offset_in<Header>(&Header::data_len));
    CHECK(offset_of(Header::type_name, "frame_id") == offset_in<Header>(&Header::frame_id));
}

/// A publisher and a subscriber of T.
template <class T>
struct Pair {
    Domain domain;
    rnet::Node node = domain.node();
    rnet::Subscriber<T> subscriber = node.subscriber<T>("/data", reliable());
    rnet::Publisher<T> publisher = node.publisher<T>("/data", reliable_publisher());
    Pair() { publisher.wait_for_subscribers_for(1, limit); }
};

}  // namespace

TEST("the headers have the layout of the other languages") {
    check_common_fields<plain::ImageHeader>();
    check_common_fields<plain::PointCloudHeader>();
    check_common_fields<plain::TensorHeader>();
    const auto image = [](const char* field) { return offset_of("rnet.msgs.Image", field); };
    using I = plain::ImageHeader;
    CHECK(image("width") == offset_in<I>(&I::width) && image("height") == offset_in<I>(&I::height));
    CHECK(image("row_stride") == offset_in<I>(&I::row_stride) && image("encoding") == offset_in<I>(&I::encoding));
    const auto cloud = [](const char* field) { return offset_of("rnet.msgs.PointCloud", field); };
    using C = plain::PointCloudHeader;
    CHECK(cloud("width") == offset_in<C>(&C::width) && cloud("height") == offset_in<C>(&C::height));
    CHECK(cloud("point_stride") == offset_in<C>(&C::point_stride) && cloud("row_stride") == offset_in<C>(&C::row_stride));
    CHECK(cloud("field_count") == offset_in<C>(&C::field_count) && cloud("flags") == offset_in<C>(&C::flags));
    CHECK(cloud("position") == offset_in<C>(&C::position) && cloud("orientation") == offset_in<C>(&C::orientation));
    CHECK(cloud("fields") == offset_in<C>(&C::fields));
    const auto tensor = [](const char* field) { return offset_of("rnet.msgs.Tensor", field); };
    using T = plain::TensorHeader;
    CHECK(tensor("dtype_code") == offset_in<T>(&T::dtype_code) && tensor("dtype_bits") == offset_in<T>(&T::dtype_bits));
    CHECK(tensor("dtype_lanes") == offset_in<T>(&T::dtype_lanes) && tensor("ndim") == offset_in<T>(&T::ndim));
    CHECK(tensor("shape") == offset_in<T>(&T::shape) && tensor("strides") == offset_in<T>(&T::strides));
}

TEST("an image is written and read in place, small or large") {
    Pair<Image> pair;
    for (std::uint32_t side : {4u, 300u}) {
        plain::ImageHeader header(side, side, "rgb8", 3 * side);
        header.frame_id = "camera";
        auto loan = pair.publisher.loan_with(header);
        CHECK(loan.data().size() == 3 * side * side && loan.header().width == side);
        std::memset(loan.data().data(), 9, loan.data().size());
        loan.data()[0] = 1;
        loan.set_timestamp_ns(123);
        loan.send({5, 0});
        CHECK(loan.data().empty() && thrown([&] { loan.send(); }) == Code::closed);

        auto view = pair.subscriber.recv_view_for(limit);
        CHECK(view->width == side && view->encoding == "rgb8" && view->frame_id == "camera");
        CHECK(view->timestamp_ns == 123 && view.source_ns() == 5);
        const auto* pixels = view->data.data();
        CHECK(view->data.size() == 3 * side * side && pixels[0] == 1 && pixels[3 * side * side - 1] == 9);
        CHECK(pixels == view.bytes().data() + sizeof(plain::ImageHeader));
        const auto kept = view.keep();
        CHECK(kept->data.data() == kept.bytes().data() + sizeof(plain::ImageHeader) && kept->data[0] == 1);
        if (side == 300) CHECK(kept->data.data() == pixels);
    }
    const std::vector<std::uint8_t> pixels(16, 3);
    pair.publisher.send(Image({4, 4, "mono8", 4}, pixels));
    const auto copied = pair.subscriber.recv_for(limit);
    CHECK(copied->data.size() == 16 && copied->data[15] == 3);
}

TEST("an invalid header is refused, and a received one is counted") {
    Pair<Image> pair;
    plain::ImageHeader narrow(640, 2, "rgb8", 640);
    auto loan = pair.publisher.loan_with(narrow);
    const auto refused = loan.send(std::nothrow);
    CHECK(!refused && refused.error().code() == Code::bad_value);
    CHECK(std::string(refused.error().what()).find("row_stride") != std::string::npos);
    plain::ImageHeader overflow(1, 1, "mono8", 1);
    overflow.data_offset = ~std::uint64_t{0};
    auto outside = pair.publisher.loan_with(overflow);
    CHECK(outside.data().empty() && !outside.send(std::nothrow));

    CHECK(!pair.publisher.loan_with(plain::ImageHeader()).send(std::nothrow));
    pair.publisher.send(Image(narrow, std::vector<std::uint8_t>(1280)));
    pair.publisher.send(Image({1, 1, "mono8", 1}, std::vector<std::uint8_t>(1, 8)));
    CHECK(thrown([&] { pair.subscriber.recv_for(limit); }) == Code::malformed);
    CHECK(pair.subscriber.recv_for(limit)->data[0] == 8);
    CHECK(thrown([] { plain::Text<4>("12345"); }) == Code::bad_value);
    CHECK(std::string_view(plain::Text<4>("1234")) == "1234");

    plain::ImageHeader header;
    rnet_bytes data{};
    const auto raw = rnet::Type::builtin("foxglove.LaserScan").value();
    CHECK(rnet_message_split(raw.handle(), {}, &header, sizeof header, &data, nullptr) == RNET_INVALID_ARGUMENT);
}

TEST("fields of points are read where they are") {
    Pair<PointCloud> pair;
    struct Point {
        float x;
        std::uint16_t ring;
    };
    plain::PointCloudHeader header(
        3, 2, sizeof(Point),
        {{"x", offsetof(Point, x), NumberType::f32}, {"ring", offsetof(Point, ring), NumberType::u16}});
    auto loan = pair.publisher.loan_with(header);
    auto* points = reinterpret_cast<Point*>(loan.data().data());
    for (int n = 0; n < 6; ++n) points[n] = {n / 2.0F, static_cast<std::uint16_t>(n)};
    loan.send();
    const auto cloud = pair.subscriber.recv_for(limit);
    const auto x = cloud->values<float>("x");
    const auto ring = cloud->values<std::uint16_t>("ring");
    CHECK(x.size() == 6 && ring.size() == 6);
    for (std::size_t n = 0; n < 6; ++n) CHECK(x[n] == static_cast<float>(n) / 2 && ring[n] == n);
    CHECK(cloud->values<double>("x").size() == 0 && cloud->values<float>("y").size() == 0);

    // Gaps at the end of each row, and a stride that no pointer can follow.
    header.row_stride += 8;
    header.data_len = 2 * header.row_stride;
    auto wide = pair.publisher.loan_with(header);
    std::memset(wide.data().data(), 0, wide.data().size());
    const float value = 7;
    std::memcpy(wide.data().data() + header.row_stride + sizeof(Point), &value, sizeof value);
    wide.send();
    const auto gaps = pair.subscriber.recv_for(limit);
    CHECK(gaps->values<float>("x")[4] == 7 && gaps->values<float>("x")[5] == 0);
}

TEST("a tensor has its shape and strides") {
    Pair<Tensor> pair;
    auto loan = pair.publisher.loan_with(plain::TensorHeader::of<float>({20, 30}));
    auto* elements = reinterpret_cast<float*>(loan.data().data());
    for (int n = 0; n < 600; ++n) elements[n] = static_cast<float>(n);
    loan.send();
    const auto tensor = pair.subscriber.recv_for(limit);
    CHECK(tensor->ndim == 2 && tensor->shape[0] == 20 && tensor->shape[1] == 30);
    CHECK(tensor->strides[0] == 120 && tensor->strides[1] == 4 && tensor->dtype_code == 2 && tensor->dtype_bits == 32);
    CHECK(reinterpret_cast<const float*>(tensor->data.data())[599] == 599);
    const auto empty = plain::TensorHeader::of<std::uint8_t>({0, 3});
    CHECK(empty.data_len == 0 && empty.strides[0] == 3 && empty.dtype_code == 1);
    pair.publisher.send(Tensor(empty, {}));
    CHECK(pair.subscriber.recv_for(limit)->data.empty());
}

RNET_TEST_MAIN()
