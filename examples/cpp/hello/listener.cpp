// Prints ten messages of the talker, then exits.
#include <rnet/rnet.hpp>
#include <iostream>

int main() {
    auto hello = rnet::Node("listener").subscriber("/hello");
    for (int n = 0; n < 10; ++n) std::cout << hello.recv_view().text() << '\n';
}
