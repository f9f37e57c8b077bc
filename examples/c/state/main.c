/* State: current values that any node reads, writes and watches.
 *
 * An arm publishes its state; a panel reads it, counts jobs, and starts one. When the arm exits for any
 * reason, its last will updates the state. */

#include <rnet.h>

#include <stdio.h>
#include <stdlib.h>

/* Ends the program if a call has failed. A pointer, because arguments are evaluated in any order. */
static void check(rnet_code code, rnet_error *const *error) {
    if (code == RNET_OK) return;
    fprintf(stderr, "%s\n", rnet_error_text(*error));
    exit(1);
}

static rnet_value_data text_of(const char *text, rnet_value_kind kind) {
    return (rnet_value_data){.kind = kind, .bytes = {(const uint8_t *)text, strlen(text)}};
}

static rnet_value *new_value(rnet_value_data data) {
    rnet_value *value = NULL;
    rnet_error *error = NULL;
    check(rnet_value_new(data, &value, &error), &error);
    return value;
}

static void print_text(const rnet_value *value) {
    rnet_bytes text = rnet_value_read(value).bytes;
    printf("%.*s", (int)text.len, (const char *)text.data);
}

static void print_key(const rnet_state *state, const char *key) {
    rnet_value *value = NULL;
    rnet_error *error = NULL;
    check(rnet_state_get(state, key, &value, &error), &error);
    print_text(value);
    rnet_value_free(value);
}

/* Starts the arm, if it is idle and no other panel does: returns RNET_CONFLICT if one interfered. */
static rnet_code start_arm(const rnet_state *state) {
    rnet_error *error = NULL;
    rnet_transaction *both = NULL;
    rnet_value *mode = NULL;
    rnet_value *moving = new_value(text_of("moving", RNET_VALUE_STRING));
    rnet_value *target = new_value(text_of("[0.5, -0.25]", RNET_VALUE_JSON));
    check(rnet_state_transaction(state, &both, &error), &error);
    check(rnet_transaction_get(both, "/arm/mode", &mode, &error), &error);
    if (rnet_value_read(mode).bytes.len == 4) {
        check(rnet_transaction_set(both, "/arm/mode", moving, NULL, &error), &error);
        check(rnet_transaction_set(both, "/arm/target_m", target, NULL, &error), &error);
    }
    rnet_code code = rnet_transaction_commit(both, NULL, &error);
    if (code != RNET_CONFLICT) check(code, &error);
    rnet_error_free(error);
    rnet_transaction_free(both);
    rnet_value_free(mode);
    rnet_value_free(moving);
    rnet_value_free(target);
    return code;
}

int main(void) {
    rnet_error *error = NULL;
    rnet_node *arm = NULL, *panel = NULL;
    rnet_state *own = NULL, *state = NULL;
    check(rnet_node_new("arm", NULL, &arm, &error), &error);
    check(rnet_node_new("panel", NULL, &panel, &error), &error);
    check(rnet_node_state(arm, &own, &error), &error);
    check(rnet_node_state(panel, &state, &error), &error);

    rnet_value *gains = new_value(text_of("{\"kp\": 12.5, \"kd\": 0.5}", RNET_VALUE_JSON));
    rnet_value *yes = new_value((rnet_value_data){.kind = RNET_VALUE_BOOL, .boolean = true});
    rnet_value *no = new_value((rnet_value_data){.kind = RNET_VALUE_BOOL, .boolean = false});
    check(rnet_state_write(own, "/arm/mode", text_of("idle", RNET_VALUE_STRING), &error), &error);
    check(rnet_state_set(own, "/arm/gains", gains, NULL, NULL, &error), &error);
    rnet_put_options options = {.struct_size = sizeof options, .last_will = no};
    check(rnet_state_set(own, "/arm/alive", yes, &options, NULL, &error), &error);
    rnet_value_free(gains);
    rnet_value_free(yes);
    rnet_value_free(no);

    printf("the arm is ");
    print_key(state, "/arm/mode");
    printf(", gains are ");
    print_key(state, "/arm/gains");
    int64_t job = 0;
    for (int i = 0; i < 3; ++i) check(rnet_state_add(state, "/arm/jobs", 1, &job, &error), &error);
    /* Both or none: no reader sees a moving arm without a target, and one of two panels wins. */
    while (start_arm(state) == RNET_CONFLICT) {
    }
    printf("\njob %lld: ", (long long)job);
    print_key(state, "/arm/mode");
    printf(" to ");
    print_key(state, "/arm/target_m");
    printf("\n");

    /* First the current values, then each change. */
    rnet_watch *watch = NULL;
    check(rnet_state_watch(state, "/arm/alive", &watch, &error), &error);
    for (bool alive = true; alive;) {
        rnet_change *change = NULL;
        rnet_change_info changed = {.struct_size = sizeof changed};
        rnet_entry_info entry = {.struct_size = sizeof entry};
        check(rnet_watch_recv(watch, RNET_FOREVER, &change, &error), &error);
        check(rnet_change_read(change, &changed, &error), &error);
        check(rnet_entry_read(changed.entry, &entry, &error), &error);
        alive = rnet_value_read(entry.value).boolean;
        printf("alive: %s\n", alive ? "true" : "false");
        rnet_change_free(change);
        rnet_node_close(arm);
    }

    rnet_watch_free(watch);
    rnet_state_free(state);
    rnet_state_free(own);
    rnet_node_free(panel);
    rnet_node_free(arm);
    return 0;
}
