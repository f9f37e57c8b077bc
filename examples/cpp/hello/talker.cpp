// Publishes ten greetings. Start it and the listener in any order.
#include <rnet/rnet.hpp>

int main() {
    auto hello = rnet::Node("talker").publisher("/hello");
    hello.wait_for_subscribers();
    for (int n = 0; n < 10; ++n) hello.send("hello, robot " + std::to_string(n));
}
