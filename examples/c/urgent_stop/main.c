// An urgent stop that is never queued behind other topics.
//
// /load is a bulk topic with a slow callback and a thousand messages waiting for it; /stop is an urgent
// topic. The lanes share neither a log nor a thread, so the stop is handled while the bulk thread still
// processes its first messages.
#define _POSIX_C_SOURCE 200809L
#include <rnet.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { LOADS = 1000 };

typedef struct Robot {
    atomic_int handled;
    /* The stop that has arrived, after `stopped` was posted. */
    rnet_sample *stop;
    sem_t stopped;
} Robot;

/* Ends the program if a call has failed. A pointer, because arguments are evaluated in any order. */
static void check(rnet_code code, rnet_error *const *error) {
    if (code == RNET_OK) return;
    fprintf(stderr, "%s\n", rnet_error_text(*error));
    exit(1);
}

static void handle_load(const rnet_sample *load, void *context) {
    (void)load;
    Robot *robot = context;
    /* Simulates the work of the callback. */
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    ++robot->handled;
}

static void handle_stop(const rnet_sample *stop, void *context) {
    Robot *robot = context;
    rnet_error *error = NULL;
    check(rnet_sample_keep(stop, &robot->stop, &error), &error);
    sem_post(&robot->stopped);
}

static rnet_subscription *listen_to(rnet_node *node, const char *topic, bool keep_all, rnet_sample_function handle,
                                    Robot *robot) {
    rnet_error *error = NULL;
    rnet_subscriber *subscriber = NULL;
    rnet_subscription *subscription = NULL;
    rnet_subscriber_options options = RNET_SUBSCRIBER_OPTIONS_INIT;
    options.keep_all = keep_all;
    check(rnet_subscriber_new(node, topic, &options, &subscriber, &error), &error);
    check(rnet_subscriber_on(subscriber, handle, NULL, robot, NULL, &subscription, &error), &error);
    rnet_subscriber_free(subscriber);
    return subscription;
}

int main(void) {
    static Robot robot;
    rnet_error *error = NULL;
    rnet_node *node = NULL, *operator_node = NULL;
    rnet_publisher *loads = NULL, *stops = NULL;
    sem_init(&robot.stopped, 0, 0);
    check(rnet_node_new("robot", NULL, &node, &error), &error);
    rnet_subscription *work = listen_to(node, "/load", true, handle_load, &robot);
    rnet_subscription *halt = listen_to(node, "/stop", false, handle_stop, &robot);

    check(rnet_node_new("operator", NULL, &operator_node, &error), &error);
    rnet_publisher_options urgent = RNET_PUBLISHER_OPTIONS_INIT;
    urgent.lane = RNET_LANE_URGENT;
    check(rnet_publisher_new(operator_node, "/load", NULL, &loads, &error), &error);
    check(rnet_publisher_new(operator_node, "/stop", &urgent, &stops, &error), &error);
    check(rnet_publisher_wait_for_subscribers(loads, 1, RNET_FOREVER, &error), &error);
    check(rnet_publisher_wait_for_subscribers(stops, 1, RNET_FOREVER, &error), &error);
    for (uint32_t n = 0; n < LOADS; ++n) {
        check(rnet_publisher_send(loads, (const uint8_t *)&n, sizeof n, &error), &error);
    }
    check(rnet_publisher_send(stops, (const uint8_t *)"obstacle", 8, &error), &error);

    while (sem_wait(&robot.stopped) != 0) {
    }
    const rnet_bytes why = rnet_sample_data(robot.stop);
    const uint64_t latency_ns = rnet_sample_taken_ns(robot.stop) - rnet_sample_sent_ns(robot.stop);
    printf("stop (%.*s) after %llu us, %d of %d loads handled\n", (int)why.len, (const char *)why.data,
           (unsigned long long)latency_ns / 1000, robot.handled, LOADS);

    rnet_sample_free(robot.stop);
    rnet_subscription_free(halt);
    rnet_subscription_free(work);
    rnet_publisher_free(stops);
    rnet_publisher_free(loads);
    rnet_node_free(operator_node);
    rnet_node_free(node);
    return 0;
}
