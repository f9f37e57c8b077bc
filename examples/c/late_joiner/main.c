// A map for subscribers that join later.
//
// The map maker publishes three revisions before any node subscribes. transient_local keeps the last one, and
// a planner that joins later receives it at once.
#include <rnet.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

enum { SIDE = 64 };

/* An occupancy grid; the same type as in the other languages, which may be the other side. */
typedef struct Map {
    uint32_t revision;
    /* Side length of a cell, in m. */
    float resolution_m;
    /* Row by row: -1 unknown, 0 free, 100 occupied. */
    int8_t cells[SIDE][SIDE];
} Map;

/* Ends the program if a call has failed. A pointer, because arguments are evaluated in any order. */
static void check(rnet_code code, rnet_error *const *error) {
    if (code == RNET_OK) return;
    fprintf(stderr, "%s\n", rnet_error_text(*error));
    exit(1);
}

static rnet_type *map_type(void) {
    const rnet_field fields[] = {
        {.name = "revision", .offset = offsetof(Map, revision), .primitive = RNET_U32},
        {.name = "resolution_m", .offset = offsetof(Map, resolution_m), .primitive = RNET_F32},
        {.name = "cells", .offset = offsetof(Map, cells), .primitive = RNET_I8, .array_len = SIDE, .inner_len = {SIDE}},
    };
    rnet_error *error = NULL;
    rnet_type *type = NULL;
    check(rnet_type_plain("Map", sizeof(Map), _Alignof(Map), fields, 3, &type, &error), &error);
    return type;
}

int main(void) {
    rnet_error *error = NULL;
    rnet_node *mapper = NULL, *planner = NULL;
    rnet_publisher *maps = NULL;
    rnet_subscriber *received = NULL;
    rnet_type *type = map_type();

    check(rnet_node_new("mapper", NULL, &mapper, &error), &error);
    rnet_publisher_options sent = RNET_PUBLISHER_OPTIONS_INIT;
    sent.message_type = type;
    sent.transient_local = 1;
    check(rnet_publisher_new(mapper, "/map", &sent, &maps, &error), &error);
    static Map map = {.resolution_m = 0.05F};
    memset(map.cells, -1, sizeof map.cells);
    for (int row = 0; row < 3; ++row) {
        ++map.revision;
        memset(map.cells[row], 0, sizeof map.cells[row]);
        check(rnet_publisher_send(maps, (const uint8_t *)&map, sizeof map, &error), &error);
    }

    check(rnet_node_new("planner", NULL, &planner, &error), &error);
    rnet_subscriber_options wanted = RNET_SUBSCRIBER_OPTIONS_INIT;
    wanted.message_type = type;
    wanted.transient_local = true;
    check(rnet_subscriber_new(planner, "/map", &wanted, &received, &error), &error);
    const rnet_sample *sample = NULL;
    check(rnet_subscriber_recv(received, RNET_FOREVER, &sample, &error), &error);
    /* The publisher has the same version of the type, so that its bytes are a Map. */
    const Map *found = (const Map *)rnet_sample_data(sample).data;
    int free_cells = 0;
    for (int n = 0; n < SIDE * SIDE; ++n) free_cells += found->cells[n / SIDE][n % SIDE] == 0;
    printf("map revision %u: %d free cells of %g m\n", found->revision, free_cells, found->resolution_m);

    rnet_subscriber_free(received);
    rnet_publisher_free(maps);
    rnet_node_free(planner);
    rnet_node_free(mapper);
    rnet_type_free(type);
    return 0;
}
