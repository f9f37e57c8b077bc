// A setting that an operator changes while the robot moves.
//
// The arm declares its gain. Setting it to a value that is not allowed returns an error and changes nothing.
// In a terminal, `rnet param set /arm gain 2.5` does the same as the operator here.
#include <rnet.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct Gain {
    double value;
    sem_t changed;
} Gain;

/* Ends the program if a call has failed. A pointer, because arguments are evaluated in any order. */
static void check(rnet_code code, rnet_error *const *error) {
    if (code == RNET_OK) return;
    fprintf(stderr, "%s\n", rnet_error_text(*error));
    exit(1);
}

static void handle_change(const rnet_value *value, void *context) {
    Gain *gain = context;
    gain->value = rnet_value_read(value).number;
    sem_post(&gain->changed);
}

static rnet_value_data number(double value) {
    return (rnet_value_data){.kind = RNET_VALUE_FLOAT, .number = value};
}

static rnet_value *new_value(double value) {
    rnet_value *made = NULL;
    rnet_error *error = NULL;
    check(rnet_value_new(number(value), &made, &error), &error);
    return made;
}

int main(void) {
    static Gain changed;
    rnet_error *error = NULL;
    rnet_node *arm = NULL, *panel = NULL;
    rnet_param *gain = NULL;
    rnet_state *state = NULL;
    rnet_value *usual = new_value(1), *min = new_value(0), *max = new_value(10);
    rnet_value_data value = {0};
    sem_init(&changed.changed, 0, 0);

    check(rnet_node_new("arm", NULL, &arm, &error), &error);
    rnet_param_options options = RNET_PARAM_OPTIONS_INIT;
    options.default_value = usual;
    options.min = min;
    options.max = max;
    options.unit = "1/s";
    options.description = "how hard the arm pulls towards its target";
    check(rnet_param_declare(arm, "/gain", &options, handle_change, &changed, NULL, &gain, &error), &error);
    rnet_value_free(usual);
    rnet_value_free(min);
    rnet_value_free(max);
    check(rnet_param_read(gain, &value, &error), &error);
    printf("gain is %.1f\n", value.number);

    check(rnet_node_new("operator", NULL, &panel, &error), &error);
    check(rnet_node_state(panel, &state, &error), &error);
    if (rnet_state_write(state, "/params/arm/gain", number(11), &error) != RNET_OK) {
        printf("refused: %s\n", rnet_error_text(error));
        rnet_error_free(error);
    }
    check(rnet_state_write(state, "/params/arm/gain", number(2.5), &error), &error);

    while (sem_wait(&changed.changed) != 0) {
    }
    printf("gain is %.1f now\n", changed.value);
    /* As in each iteration of a control loop. */
    check(rnet_param_read(gain, &value, &error), &error);
    const int is_changed = value.number == 2.5;

    rnet_state_free(state);
    rnet_node_free(panel);
    rnet_param_free(gain);
    rnet_node_free(arm);
    return is_changed ? 0 : 1;
}
