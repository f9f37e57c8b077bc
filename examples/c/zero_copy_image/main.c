// Camera frames without copies: written and read in the same shared memory.
//
// rnet_publisher_loan() lends a piece of shared memory, rnet_loan_send() puts its address into the log, and
// the viewer's sample is a view of the same bytes. A 900 KiB frame costs as much as a few bytes.
#include <pthread.h>
#include <rnet.h>
#include <stdio.h>
#include <stdlib.h>

enum { WIDTH = 640, HEIGHT = 480, CHANNELS = 3, FRAMES = 30 };

/* Ends the program if a call has failed. A pointer, because arguments are evaluated in any order. */
static void check(rnet_code code, rnet_error *const *error) {
    if (code == RNET_OK) return;
    fprintf(stderr, "%s\n", rnet_error_text(*error));
    exit(1);
}

/* A grey picture whose first pixel, top left, is red. */
static void draw(rnet_mut_bytes frame, int number) {
    memset(frame.data, number, frame.len);
    frame.data[0] = 255;
    frame.data[1] = frame.data[2] = 0;
}

static void *view(void *unused) {
    rnet_error *error = NULL;
    rnet_node *node = NULL;
    rnet_subscriber *images = NULL;
    check(rnet_node_new("viewer", NULL, &node, &error), &error);
    rnet_subscriber_options options = RNET_SUBSCRIBER_OPTIONS_INIT;
    options.reliable = true;
    check(rnet_subscriber_new(node, "/camera/image", &options, &images, &error), &error);
    for (int n = 0; n < FRAMES; ++n) {
        const rnet_sample *frame = NULL;
        check(rnet_subscriber_recv(images, RNET_FOREVER, &frame, &error), &error);
        const rnet_bytes bytes = rnet_sample_data(frame);
        const uint8_t *first = bytes.data, *last = bytes.data + bytes.len - CHANNELS;
        printf("frame %llu: %zu bytes, from [%d, %d, %d] to [%d, %d, %d]\n",
               (unsigned long long)rnet_sample_seq(frame), bytes.len, first[0], first[1], first[2], last[0], last[1],
               last[2]);
    }
    rnet_subscriber_counts counts = RNET_SUBSCRIBER_COUNTS_INIT;
    check(rnet_subscriber_get_counts(images, &counts, &error), &error);
    const uint64_t lost = counts.lost_overrun + counts.lost_link + counts.lost_restart + counts.lost_detached;
    printf("lost: %llu\n", (unsigned long long)lost);
    rnet_subscriber_free(images);
    rnet_node_free(node);
    return unused;
}

int main(void) {
    rnet_error *error = NULL;
    rnet_node *camera = NULL;
    rnet_publisher *images = NULL;
    check(rnet_node_new("camera", NULL, &camera, &error), &error);
    /* Reliable, because this viewer needs every frame; on a robot, dropping one is usually better. */
    rnet_publisher_options options = RNET_PUBLISHER_OPTIONS_INIT;
    options.reliable = true;
    options.full_timeout_ns = 10000000000;
    check(rnet_publisher_new(camera, "/camera/image", &options, &images, &error), &error);
    pthread_t viewer;
    if (pthread_create(&viewer, NULL, view, NULL) != 0) return 1;
    check(rnet_publisher_wait_for_subscribers(images, 1, RNET_FOREVER, &error), &error);
    for (int number = 0; number < FRAMES; ++number) {
        rnet_loan *frame = NULL;
        check(rnet_publisher_loan(images, WIDTH * HEIGHT * CHANNELS, &frame, &error), &error);
        draw(rnet_loan_data(frame), number);
        check(rnet_loan_send(frame, &error), &error);
        rnet_loan_free(frame);
    }
    /* The publisher owns the frames, so it stays open until they have been read. */
    pthread_join(viewer, NULL);
    rnet_publisher_free(images);
    rnet_node_free(camera);
    return 0;
}
