// Prints ten messages of the talker, then exits.
#include <rnet.h>
#include <stdio.h>

int main(void) {
    rnet_node *node = NULL;
    rnet_subscriber *hello = NULL;
    rnet_error *error = NULL;

    rnet_code code = rnet_node_new("listener", NULL, &node, &error);
    if (code == RNET_OK) code = rnet_subscriber_new(node, "/hello", NULL, &hello, &error);
    for (int n = 0; code == RNET_OK && n < 10; ++n) {
        const rnet_sample *sample = NULL;  // Valid until the next receive.
        code = rnet_subscriber_recv(hello, RNET_FOREVER, &sample, &error);
        if (code != RNET_OK) break;
        const rnet_bytes bytes = rnet_sample_data(sample);
        printf("%.*s\n", (int)bytes.len, (const char *)bytes.data);
    }
    if (code != RNET_OK) fprintf(stderr, "listener: %s\n", rnet_error_text(error));

    rnet_error_free(error);
    rnet_subscriber_free(hello);
    rnet_node_free(node);
    return code == RNET_OK ? 0 : 1;
}
