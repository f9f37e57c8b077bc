/*
 * A program of the first release: compiled with the header of that release, which is next to it, and linked with the
 * present library. cpp/test.sh runs it. It never changes; if it fails, librnet.so.1 has become incompatible.
 */
#include <rnet.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int failures = 0;

#define CHECK(condition) ((condition) ? (void)0 : fail(#condition, __LINE__))

static void fail(const char *condition, int line) {
    fprintf(stderr, "first release, line %d: does not hold: %s\n", line, condition);
    ++failures;
}

/* Counts messages. The context is freed by freed(). */
static void on_message(const rnet_sample *sample, void *context) {
    if (rnet_sample_data(sample).len == 5) ++*(int *)context;
}

static void freed(void *context) { *(int *)context += 100; }

static void topics(rnet_node *node) {
    rnet_error *error = NULL;
    rnet_publisher_options to_all = RNET_PUBLISHER_OPTIONS_INIT;
    to_all.reliable = true;
    to_all.on_full = RNET_ON_FULL_WAIT;
    to_all.full_timeout_ns = 5000000000;
    to_all.transient_local = 4;
    rnet_subscriber_options all = RNET_SUBSCRIBER_OPTIONS_INIT;
    all.reliable = true;
    all.transient_local = true;
    all.wait = RNET_WAIT_BLOCK;

    rnet_publisher *publisher = NULL;
    rnet_subscriber *subscriber = NULL, *listener = NULL;
    rnet_subscription *subscription = NULL;
    CHECK(rnet_publisher_new(node, "/hello", &to_all, &publisher, &error) == RNET_OK);
    CHECK(rnet_subscriber_new(node, "/hello", &all, &subscriber, &error) == RNET_OK);
    CHECK(rnet_subscriber_new(node, "/hello", &all, &listener, &error) == RNET_OK);
    int calls = 0;
    CHECK(rnet_subscriber_on(listener, on_message, NULL, &calls, freed, &subscription, &error) == RNET_OK);
    CHECK(rnet_publisher_wait_for_subscribers(publisher, 2, 10000000000, &error) == RNET_OK);

    CHECK(rnet_publisher_send(publisher, (const uint8_t *)"first", 5, &error) == RNET_OK);
    rnet_meta meta = RNET_META_INIT;
    meta.source_ns = 7;
    meta.correlation = 8;
    CHECK(rnet_publisher_send_with(publisher, (const uint8_t *)"after", 5, &meta, &error) == RNET_OK);

    const rnet_sample *sample = NULL;
    CHECK(rnet_subscriber_recv(subscriber, 10000000000, &sample, &error) == RNET_OK && sample);
    CHECK(strcmp(rnet_sample_topic(sample), "/hello") == 0);
    rnet_sample *kept = NULL;
    CHECK(rnet_sample_keep(sample, &kept, &error) == RNET_OK);
    CHECK(rnet_subscriber_recv(subscriber, 10000000000, &sample, &error) == RNET_OK && sample);
    CHECK(rnet_sample_source_ns(sample) == 7 && rnet_sample_correlation(sample) == 8);
    CHECK(memcmp(rnet_sample_data(kept).data, "first", 5) == 0 && rnet_sample_seq(kept) == 0);
    CHECK(rnet_subscriber_recv(subscriber, 0, &sample, &error) == RNET_OK && !sample);

    rnet_subscriber_counts lost = RNET_SUBSCRIBER_COUNTS_INIT;
    CHECK(rnet_subscriber_get_counts(subscriber, &lost, &error) == RNET_OK);
    CHECK(lost.lost_overrun == 0 && lost.lost_detached == 0);

    rnet_subscription_free(subscription);
    CHECK(calls >= 100 && calls <= 102);
    rnet_sample_free(kept);
    rnet_subscriber_free(listener);
    rnet_subscriber_free(subscriber);
    rnet_publisher_free(publisher);
}

static void errors(rnet_node *node) {
    rnet_error *error = NULL;
    rnet_publisher *publisher = NULL;
    CHECK(rnet_publisher_new(node, "not a topic", NULL, &publisher, &error) == RNET_BAD_NAME);
    CHECK(error && rnet_error_code(error) == RNET_BAD_NAME && strlen(rnet_error_text(error)) > 0);
    rnet_error_free(error);
    error = NULL;
    CHECK(rnet_publisher_new(node, NULL, NULL, &publisher, NULL) == RNET_INVALID_ARGUMENT);

    rnet_subscriber *subscriber = NULL;
    const rnet_sample *sample = NULL;
    CHECK(rnet_subscriber_new(node, "/silent", NULL, &subscriber, &error) == RNET_OK);
    CHECK(rnet_subscriber_recv(subscriber, 1000000, &sample, NULL) == RNET_TIMEOUT);
    rnet_node_close(node);
    CHECK(rnet_subscriber_recv(subscriber, RNET_FOREVER, &sample, NULL) == RNET_CLOSED);
    CHECK(strcmp(rnet_code_name(RNET_CLOSED), "closed") == 0);
    rnet_subscriber_free(subscriber);
}

static void state(rnet_node *node) {
    rnet_error *error = NULL;
    rnet_state *state = NULL;
    rnet_value_data data = {.kind = RNET_VALUE_INT, .integer = 42}, found = data;
    rnet_value_data text = {.kind = RNET_VALUE_STRING, .bytes = {(const uint8_t *)"many", 4}};
    CHECK(rnet_node_state(node, &state, &error) == RNET_OK);
    CHECK(rnet_state_read(state, "arm/count", &found, &error) == RNET_OK && found.kind == RNET_VALUE_NONE);
    CHECK(rnet_state_write(state, "arm/count", data, &error) == RNET_OK);
    CHECK(rnet_state_read(state, "arm/count", &found, &error) == RNET_OK && found.integer == 42);
    CHECK(rnet_state_write(state, "arm/count", text, NULL) == RNET_STATE_TYPE);
    rnet_state_free(state);
}

int main(void) {
    char domain[32];
    snprintf(domain, sizeof domain, "first%d", (int)getpid());
    rnet_node_options options = RNET_NODE_OPTIONS_INIT;
    options.domain = domain;
    rnet_node *node = NULL;
    rnet_error *error = NULL;
    if (rnet_node_new("first", &options, &node, &error) != RNET_OK) {
        fprintf(stderr, "first release: %s\n", rnet_error_text(error));
        return 1;
    }
    CHECK(strcmp(rnet_node_name(node), "/first") == 0 && strcmp(rnet_node_domain(node), domain) == 0);
    topics(node);
    state(node);
    errors(node);
    rnet_node_free(node);
    return failures == 0 ? 0 : 1;
}
