// Publishes ten greetings. Start it and the listener in any order.
#include <rnet.h>
#include <stdio.h>

int main(void) {
    rnet_node *node = NULL;
    rnet_publisher *hello = NULL;
    rnet_error *error = NULL;

    // Each call is made only if all before it succeeded.
    rnet_code code = rnet_node_new("talker", NULL, &node, &error);
    if (code == RNET_OK) code = rnet_publisher_new(node, "/hello", NULL, &hello, &error);
    if (code == RNET_OK) code = rnet_publisher_wait_for_subscribers(hello, 1, RNET_FOREVER, &error);
    for (int n = 0; code == RNET_OK && n < 10; ++n) {
        char text[32];
        const int len = snprintf(text, sizeof text, "hello, robot %d", n);
        code = rnet_publisher_send(hello, (const uint8_t *)text, (size_t)len, &error);
    }
    if (code != RNET_OK) fprintf(stderr, "talker: %s\n", rnet_error_text(error));

    rnet_error_free(error);
    rnet_publisher_free(hello);
    rnet_node_free(node);
    return code == RNET_OK ? 0 : 1;
}
