// Messages and standard input in one loop of poll(2).
//
// A descriptor stays readable until try_recv() gives nothing, so that the loop receives until then. Enter a
// line to send it.
#include <rnet/rnet.hpp>
#include <rnet/wait_set.hpp>

#include <iostream>
#include <poll.h>
#include <string_view>
#include <unistd.h>

int main() {
    rnet::Node node("chat");
    auto sent = node.publisher("/chat");
    auto received = node.subscriber("/chat");
    received.wait_for_publishers();
    pollfd events[] = {{rnet::fd(received), POLLIN, 0}, {STDIN_FILENO, POLLIN, 0}};

    while (poll(events, 2, -1) >= 0) {
        if (events[0].revents != 0) {
            while (auto message = received.try_recv()) std::cout << "received: " << message->text() << std::flush;
        }
        if (events[1].revents != 0) {
            char text[256];
            const ssize_t length = read(STDIN_FILENO, text, sizeof text);
            if (length <= 0) break;
            sent.send(std::string_view(text, static_cast<std::size_t>(length)));
        }
    }
}
