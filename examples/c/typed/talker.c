// A laser scanner that sends one scan. Start it and the listener in any order.
//
// C has no classes for messages: a program fills a built-in message from JSON, and sends plain structs as
// they are in memory (late_joiner/main.c).
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
    rnet_publisher *scans = NULL;
    rnet_buffer *scan = NULL;
    check(rnet_node_new("lidar", NULL, &node, &error), &error);
    check(rnet_type_builtin("foxglove.LaserScan", &type, &error), &error);
    rnet_publisher_options options = RNET_PUBLISHER_OPTIONS_INIT;
    options.message_type = type;
    check(rnet_publisher_new(node, "/scan", &options, &scans, &error), &error);
    check(rnet_publisher_wait_for_subscribers(scans, 1, RNET_FOREVER, &error), &error);
    const char *json = "{\"frame_id\": \"laser\", \"ranges\": [1.5, 1.25, 2.0]}";
    check(rnet_message_from_json(type, json, &scan, &error), &error);
    const rnet_bytes bytes = rnet_buffer_bytes(scan);
    check(rnet_publisher_send(scans, bytes.data, bytes.len, &error), &error);

    rnet_buffer_free(scan);
    rnet_publisher_free(scans);
    rnet_type_free(type);
    rnet_node_free(node);
    return 0;
}
