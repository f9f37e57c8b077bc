// Pictures of OpenCV without copies. Needs libopencv-core-dev.
//
// The camera draws through a cv::Mat into shared memory, and the viewer's cv::Mat is a view of the same
// bytes.
#include <rnet/msgs/plain.hpp>
#include <rnet/rnet.hpp>

#include <opencv2/core.hpp>

#include <iostream>

constexpr int width = 640, height = 480;

/// Valid as long as the sample of the image. To be read only, because other nodes read the same bytes.
cv::Mat view_of(const rnet::msgs::Image& image) {
    auto* pixels = const_cast<std::uint8_t*>(image.data.data());
    return cv::Mat(static_cast<int>(image.height), static_cast<int>(image.width), CV_8UC3, pixels, image.row_stride);
}

int main() {
    rnet::Node node("opencv");
    auto received = node.subscriber<rnet::msgs::Image>("/camera");
    auto images = node.publisher<rnet::msgs::Image>("/camera");
    images.wait_for_subscribers();

    auto image = images.loan_with({width, height, "bgr8", width * 3});
    cv::Mat drawing(height, width, CV_8UC3, image.data().data());
    drawing = cv::Scalar(0, 128, 255);
    drawing.row(0) = cv::Scalar(255, 0, 0);
    image.send();

    const auto sample = received.recv();
    const cv::Mat seen = view_of(*sample);
    std::cout << seen.cols << " x " << seen.rows << ' ' << std::string_view(sample->encoding) << ", from "
              << seen.at<cv::Vec3b>(0, 0) << " to " << seen.at<cv::Vec3b>(height - 1, width - 1) << '\n';
    std::cout << "is a view: " << std::boolalpha << (seen.u == nullptr && seen.data == sample->data.data()) << '\n';
}
