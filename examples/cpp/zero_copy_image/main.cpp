// Camera frames without copies: written and read in the same shared memory.
//
// loan() lends a piece of shared memory, send() puts its address into the log, and the viewer's sample is a
// view of the same bytes. A 900 KiB frame costs as much as a few bytes.
#include <rnet/rnet.hpp>

#include <algorithm>
#include <iostream>
#include <thread>

using namespace std::chrono_literals;

constexpr std::size_t width = 640, height = 480, channels = 3;
constexpr int frames = 30;

/// A grey picture whose first pixel, top left, is red.
void draw(rnet::Span<std::uint8_t> frame, int number) {
    std::fill(frame.begin(), frame.end(), static_cast<std::uint8_t>(number));
    frame[0] = 255;
    frame[1] = frame[2] = 0;
}

void print_pixel(rnet::Bytes pixel) {
    std::cout << '[' << int{pixel[0]} << ", " << int{pixel[1]} << ", " << int{pixel[2]} << ']';
}

void view() {
    rnet::Node node("viewer");
    auto images = node.subscriber("/camera/image", {.reliable = true});
    for (int n = 0; n < frames; ++n) {
        auto frame = images.recv_view();
        const rnet::Bytes bytes = frame.bytes();
        std::cout << "frame " << frame.seq() << ": " << bytes.size() << " bytes, from ";
        print_pixel(bytes.first(channels));
        std::cout << " to ";
        print_pixel(bytes.subspan(bytes.size() - channels));
        std::cout << '\n';
    }
    std::cout << "lost: " << images.lost().total() << '\n';
}

int main() {
    rnet::Node camera("camera");
    // Reliable, because this viewer needs every frame; on a robot, dropping one is usually better.
    auto images = camera.publisher("/camera/image", {.reliable = true, .full_timeout = 10s});
    std::thread viewer(view);
    images.wait_for_subscribers();
    for (int number = 0; number < frames; ++number) {
        auto frame = images.loan(width * height * channels);
        draw(frame.span(), number);
        frame.send();
    }
    // The publisher owns the frames, so it stays open until they have been read.
    viewer.join();
}
