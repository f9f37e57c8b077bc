// Values of the state in C.
#include "state_check.hpp"

#include <rnet/state.hpp>

using check::Domain;
using rnet::State;

TEST("the C functions for plain types need no value objects") {
    Domain domain;
    const State state = State::open(domain.node);
    rnet_value_data data{};
    const auto write = [&](const char* key, int kind) {
        data.kind = kind;
        return rnet_state_write(state.handle(), key, data, nullptr);
    };
    data.boolean = true;
    data.integer = 3;
    data.number = 0.5;
    data.bytes = rnet::detail::c_bytes(rnet::bytes_of("idle"));
    CHECK(write("/b", RNET_VALUE_BOOL) == RNET_OK && write("/i", RNET_VALUE_INT) == RNET_OK);
    CHECK(write("/f", RNET_VALUE_FLOAT) == RNET_OK && write("/s", RNET_VALUE_STRING) == RNET_OK);
    CHECK(write("/s", RNET_VALUE_INT) == RNET_STATE_TYPE && write("/n", 77) == RNET_INVALID_ARGUMENT);
    rnet_value_data found{};
    const auto read = [&](const char* key) { return rnet_state_read(state.handle(), key, &found, nullptr); };
    CHECK(read("/f") == RNET_OK && found.kind == RNET_VALUE_FLOAT && found.number == 0.5);
    CHECK(read("/i") == RNET_OK && found.kind == RNET_VALUE_INT && found.integer == 3);
    CHECK(read("/absent") == RNET_OK && found.kind == RNET_VALUE_NONE);
    CHECK(read("/s") == RNET_STATE_TYPE);
    CHECK(state.get<std::string>("/s") == "idle" && state.get<bool>("/b") == true &&
          state.get<int>("/i") == 3);
}

RNET_TEST_MAIN()
