// One node, eight topics, one wait for all of them.
//
// Each topic carries the readings of one sensor. A node that waits for eight topics sleeps in a single wait,
// because a process has one doorbell per waiting thread, not per topic. It needs every reading, so it uses
// keep_all: the default keeps the last ten unread messages.
#include <pthread.h>
#include <rnet.h>
#include <stdio.h>
#include <stdlib.h>

enum { SENSORS = 8, READINGS = 100 };

/* Ends the program if a call has failed. A pointer, because arguments are evaluated in any order. */
static void check(rnet_code code, rnet_error *const *error) {
    if (code == RNET_OK) return;
    fprintf(stderr, "%s\n", rnet_error_text(*error));
    exit(1);
}

/* Sensor n reads 10 n, 10 n + 1, 10 n, … */
static void *measure(void *context) {
    rnet_publisher **sensors = context;
    rnet_error *error = NULL;
    for (int n = 0; n < SENSORS; ++n) {
        check(rnet_publisher_wait_for_subscribers(sensors[n], 1, RNET_FOREVER, &error), &error);
    }
    for (int turn = 0; turn < READINGS; ++turn) {
        for (int n = 0; n < SENSORS; ++n) {
            const double reading = 10.0 * n + turn % 2;
            check(rnet_publisher_send(sensors[n], (const uint8_t *)&reading, sizeof reading, &error), &error);
        }
    }
    return NULL;
}

int main(void) {
    rnet_error *error = NULL;
    rnet_node *node = NULL;
    rnet_wait_set *set = NULL;
    rnet_publisher *sensors[SENSORS];
    rnet_subscriber *readers[SENSORS];
    check(rnet_node_new("many_topics", NULL, &node, &error), &error);
    check(rnet_wait_set_new(node, &set, &error), &error);
    rnet_subscriber_options options = RNET_SUBSCRIBER_OPTIONS_INIT;
    options.keep_all = true;
    for (int n = 0; n < SENSORS; ++n) {
        char topic[16];
        snprintf(topic, sizeof topic, "/sensor_%d", n);
        check(rnet_subscriber_new(node, topic, &options, &readers[n], &error), &error);
        check(rnet_wait_set_attach_subscriber(set, readers[n], &error), &error);
        check(rnet_publisher_new(node, topic, NULL, &sensors[n], &error), &error);
    }
    pthread_t measuring;
    if (pthread_create(&measuring, NULL, measure, sensors) != 0) return 1;

    double sums[SENSORS] = {0};
    int counts[SENSORS] = {0};
    for (int total = 0; total < SENSORS * READINGS;) {
        size_t ready = 0;
        check(rnet_wait_set_wait(set, RNET_FOREVER, &ready, &error), &error);
        for (int n = 0; n < SENSORS; ++n) {
            for (const rnet_sample *sample = NULL;; ++counts[n], ++total) {
                check(rnet_subscriber_recv(readers[n], 0, &sample, &error), &error);
                if (!sample) break;
                double reading;
                memcpy(&reading, rnet_sample_data(sample).data, sizeof reading);
                sums[n] += reading;
            }
        }
    }
    pthread_join(measuring, NULL);
    for (int n = 0; n < SENSORS; ++n) {
        printf("/sensor_%d: %d readings, mean %.1f\n", n, counts[n], sums[n] / counts[n]);
        rnet_publisher_free(sensors[n]);
        rnet_subscriber_free(readers[n]);
    }
    rnet_wait_set_free(set);
    rnet_node_free(node);
    return 0;
}
