// Prints every scan, as JSON, until Ctrl-C.
#include <rnet.h>
#include <stdio.h>
#include <stdlib.h>

/* Ends the program if a call has failed. A pointer, because arguments are evaluated in any order. */
static void check(rnet_code code, rnet_error *const *error) {
    if (code == RNET_OK) return;
    fprintf(stderr, "%s\n", rnet_error_text(*error));
    exit(1);
}

int main(void) {
    rnet_error *error = NULL;
    rnet_node *node = NULL;
    rnet_type *type = NULL;
    rnet_subscriber *scans = NULL;
    check(rnet_node_new("map", NULL, &node, &error), &error);
    check(rnet_type_builtin("foxglove.LaserScan", &type, &error), &error);
    rnet_subscriber_options options = RNET_SUBSCRIBER_OPTIONS_INIT;
    options.message_type = type;
    check(rnet_subscriber_new(node, "/scan", &options, &scans, &error), &error);
    for (;;) {
        const rnet_sample *scan = NULL;
        rnet_buffer *json = NULL;
        check(rnet_subscriber_recv(scans, RNET_FOREVER, &scan, &error), &error);
        check(rnet_message_to_json(type, rnet_sample_data(scan), &json, &error), &error);
        printf("%s\n", rnet_buffer_text(json));
        fflush(stdout);
        rnet_buffer_free(json);
    }
}
