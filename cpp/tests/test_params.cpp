#include "state_check.hpp"

#include <rnet/param.hpp>
#include <rnet/state.hpp>

#include <future>
#include <stdexcept>
#include <thread>

using namespace std::chrono_literals;
using check::Domain;
using check::failure;
using rnet::Code;
using rnet::Param;
using rnet::ParamOptions;
using rnet::State;
using rnet::Value;

namespace {

ParamOptions<double> gain() {
    ParamOptions<double> options;
    options.default_value = 1.0;
    options.min = 0.0;
    options.max = 10.0;
    options.unit = "1/s";
    options.description = "how hard the arm pulls";
    return options;
}

template <class T>
T get(std::future<T>&& future) {
    CHECK(future.wait_for(10s) == std::future_status::ready);
    return future.get();
}

}  // namespace

TEST("a parameter has its default until it is set") {
    Domain domain;
    auto param = Param<double>::declare(domain.node, "gain", gain());
    CHECK(param.get() == 1.0 && param.name() == "/gain" && param.key() == "/params/arm/gain");
    param.set(2.5);
    CHECK(param.get() == 2.5);
    const auto failed = param.set(11.0, std::nothrow);
    CHECK(!failed && failed.error().code() == Code::bad_value);
    CHECK(std::string(failed.error().what()).find("11.0 is above its maximum 10.0 1/s") != std::string::npos);
    CHECK(param.get() == 2.5);
    const State state = State::open(domain.node);
    CHECK_CODE(bad_value, state.set("/params/arm/gain", -1.0));
    state.set("/params/arm/gain", 3.0);
    CHECK(param.get() == 3.0);
    param.reset();
    CHECK(param.get() == 1.0);
}

TEST("parameters of each type") {
    Domain domain;
    const auto& node = domain.node;
    ParamOptions<bool> on;
    on.default_value = true;
    CHECK(Param<bool>::declare(node, "on", on).get());
    ParamOptions<std::int64_t> count;
    count.default_value = 3;
    count.min = 1;
    auto ints = Param<std::int64_t>::declare(node, "count", count);
    CHECK(ints.get() == 3);
    CHECK_CODE(bad_value, ints.set(0));
    ParamOptions<std::string> mode;
    mode.default_value = "slow";
    mode.choices = {"slow", "fast"};
    auto text = Param<std::string>::declare(node, "mode", mode);
    text.set("fast");
    CHECK(text.get() == "fast");
    CHECK_CODE(bad_value, text.set("warp"));
    ParamOptions<std::vector<double>> limits;
    limits.default_value = std::vector<double>{};
    limits.max = 2.0;
    auto list = Param<std::vector<double>>::declare(node, "limits", limits);
    CHECK(list.get().empty());
    list.set({0.5, 1.5});
    CHECK((list.get() == std::vector<double>{0.5, 1.5}));
    CHECK_CODE(bad_value, list.set({3.0}));
    ParamOptions<std::vector<bool>> flags;
    flags.default_value = std::vector<bool>{true, false};
    CHECK((Param<std::vector<bool>>::declare(node, "flags", flags).get() == std::vector<bool>{true, false}));
    ParamOptions<std::vector<std::string>> names;
    names.default_value = std::vector<std::string>{"a"};
    CHECK(Param<std::vector<std::string>>::declare(node, "names", names).get().front() == "a");
}

TEST("a declaration that contradicts itself or another is an error") {
    Domain domain;
    CHECK_CODE(bad_value, Param<double>::declare(domain.node, "unset"));
    ParamOptions<double> options = gain();
    options.default_value = 20.0;
    CHECK_CODE(bad_value, Param<double>::declare(domain.node, "gain", options));
    const auto first = Param<double>::declare(domain.node, "gain", gain());
    const auto same = Param<double>::declare(domain.node, "gain", gain());
    options = gain();
    options.max = 11.0;
    CHECK_CODE(bad_value, Param<double>::declare(domain.node, "gain", options));
    CHECK_CODE(bad_name, Param<double>::declare(domain.node, "a b", gain()));
}

TEST("each new value calls the callbacks") {
    Domain domain;
    const State state = State::open(domain.node);
    std::promise<double> first, second, later;
    ParamOptions<double> options = gain();
    options.on_change = [&](double value) {
        state.set("/seen", value);
        if (value == 2.0) throw std::runtime_error("an exception in the callback");
        first.set_value(value);
    };
    auto token = std::make_shared<int>(0);
    const std::weak_ptr<int> alive = token;
    {
        auto param = Param<double>::declare(domain.node, "gain", options);
        rnet::Watch seen = state.watch("/seen");
        state.set("/params/arm/gain", 2.0);
        CHECK(seen.recv_for(10s).get<double>() == 2.0);
        rnet::Guard guard = param.on_change([&, token = std::move(token)](double value) {
            if (value == 3.0) second.set_value(value);
        });
        param.set(3.0);
        CHECK(get(first.get_future()) == 3.0 && get(second.get_future()) == 3.0);
    }
    CHECK(alive.expired());
    // The first callback has ended with the parameter.
    state.set("/params/arm/gain", 4.0);
    auto again = Param<double>::declare(domain.node, "gain", gain());
    rnet::Guard guard = again.on_change([&](double value) { later.set_value(value); });
    again.set(5.0);
    CHECK(get(later.get_future()) == 5.0 && state.get<double>("/seen") == 3.0);
}

TEST("a stored value that is not allowed is replaced by the default, and reported") {
    Domain domain;
    const State state = State::open(domain.node);
    state.set("/params/arm/gain", 99.0);
    ParamOptions<double> options = gain();
    std::string report;
    options.on_refused = [&](const rnet::RefusedValue& refused) {
        report = refused.value + " " + refused.why + " by " + refused.set_by;
    };
    auto param = Param<double>::declare(domain.node, "gain", options);
    CHECK(param.get() == 1.0 && report == "99.0 is above its maximum 10.0 1/s by /arm");
    CHECK(param.refused() && param.refused()->value == "99.0");
    state.set("/params/arm/off", 99.0);
    options.on_refused = [](const rnet::RefusedValue&) { throw rnet::Error(Code::io); };
    CHECK_CODE(io, Param<double>::declare(domain.node, "off", options));
}

TEST("all parameters are listed") {
    Domain domain;
    ParamOptions<std::string> mode;
    mode.default_value = "slow";
    mode.choices = {"slow", "fast"};
    mode.read_only = true;
    auto text = Param<std::string>::declare(domain.node, "mode", mode);
    auto param = Param<double>::declare(domain.node, "gain", gain());
    const State state = State::open(domain.node);
    state.set("/params/other/x", 1);
    const std::vector<rnet::ParamInfo> all = state.params();
    CHECK(all.size() == 3);
    CHECK(all[0].key == "/params/arm/gain" && all[0].node == "/arm" && all[0].name == "/gain" &&
          all[0].kind == "float");
    CHECK(all[0].value == Value(1.0) && all[0].default_value == Value(1.0) && all[0].is_default);
    CHECK(all[0].min == Value(0.0) && all[0].max == Value(10.0) && all[0].unit == "1/s" && !all[0].read_only);
    CHECK(all[0].description == "how hard the arm pulls" && !all[0].problem && !all[0].refused);
    CHECK((all[1].choices == std::vector<std::string>{"slow", "fast"}) && all[1].read_only &&
          !all[1].durable);
    CHECK(all[2].key == "/params/other/x" && all[2].node.empty() && all[2].value == Value(1));
    CHECK_CODE(bad_value, text.set("fast"));
    param.set(2.0);
    CHECK(!state.params()[0].is_default && param.info().max == Value(10.0));
    state.reset_param("arm", "gain");
    CHECK(param.get() == 1.0 && state.params()[0].is_default);
    CHECK_CODE(bad_value, state.reset_param("arm", "none"));
}

TEST("a durable parameter survives all nodes") {
    check::Folder folder;
    ParamOptions<double> options = gain();
    options.durable = true;
    {
        check::TestNode node("arm", folder.path());
        Param<double>::declare(node, "gain", options).set(2.5);
    }
    std::filesystem::remove_all(folder.path("shm"));
    check::TestNode node("arm", folder.path());
    CHECK(Param<double>::declare(node, "gain", options).get() == 2.5);
}

TEST("a parameter of a closed node is closed, and one of a freed node is not") {
    Domain domain;
    auto param = Param<double>::declare(domain.node, "gain", gain());
    domain.node.close();
    CHECK_CODE(closed, param.get());
    CHECK_CODE(closed, param.set(2.0));
    CHECK_CODE(closed, param.on_change([](double) {}));
    CHECK_CODE(closed, Param<double>::declare(domain.node, "gain", gain()));
    CHECK(param.key() == "/params/arm/gain");
    check::Folder folder;
    auto node = std::make_unique<check::TestNode>("arm", folder.path());
    auto other = Param<double>::declare(*node, "gain", gain());
    node.reset();
    other.set(2.0);
    CHECK(other.get() == 2.0);
}

TEST("null, wrong kinds and wrong sizes are errors of the C API") {
    Domain domain;
    const auto declare = [&](const rnet_param_options* options, const char* name) {
        return failure([&](auto e) {
            rnet_param* param = nullptr;
            const rnet_code code =
                rnet_param_declare(domain.node.handle(), name, options, nullptr, nullptr, nullptr, &param, e);
            rnet_param_free(param);
            return code;
        });
    };
    rnet_param_options options{};
    CHECK(declare(&options, "gain").second.find("RNET_PARAM_OPTIONS_INIT") != std::string::npos);
    options.struct_size = sizeof options;
    options.kind = "complex";
    CHECK(declare(&options, "gain").second.find("complex is not a type of parameters") == 0);
    options.kind = "float";
    CHECK(declare(&options, nullptr).second == "name is null");
    CHECK(declare(&options, "gain").first == RNET_BAD_VALUE);
    options.choice_count = 1;
    CHECK(declare(&options, "gain").second == "choices is null");
    options.choice_count = 0;
    const Value three(3), text("fast");
    options.default_value = text.handle();
    CHECK(declare(&options, "gain").first == RNET_BAD_VALUE);
    options.default_value = three.handle();
    CHECK(declare(&options, "gain").first == RNET_OK);
    // The context is freed if the declaration fails.
    int freed = 0;
    const auto free_context = [](void* context) { ++*static_cast<int*>(context); };
    CHECK(rnet_param_declare(nullptr, "gain", &options, nullptr, &freed, free_context, nullptr, nullptr) ==
          RNET_INVALID_ARGUMENT);
    CHECK(freed == 1);
    rnet_param* param = nullptr;
    rnet_node* node = domain.node.handle();
    CHECK(failure(rnet_param_declare, node, "gain", &options, nullptr, nullptr, nullptr, &param).first ==
          RNET_OK);
    rnet_value_data data{};
    CHECK(rnet_param_read(param, &data, nullptr) == RNET_OK && data.kind == RNET_VALUE_FLOAT && data.number == 3.0);
    CHECK(failure(rnet_param_read, param, nullptr).first == RNET_INVALID_ARGUMENT);
    CHECK(failure(rnet_param_set, param, nullptr).second == "value is null");
    CHECK(failure(rnet_param_on_change, param, nullptr, nullptr, nullptr, nullptr).second ==
          "on_change is null");
    CHECK(failure(rnet_param_get, nullptr, nullptr).second == "param is null");
    CHECK(std::string(rnet_param_describe(param)->kind) == "float" && !rnet_param_describe(nullptr));
    rnet_param_list* list = nullptr;
    CHECK(rnet_state_params(State::open(domain.node).handle(), &list, nullptr) == RNET_OK);
    CHECK(std::string(rnet_param_list_get(list, 0)->name) == "/gain" && !rnet_param_list_get(list, 1));
    rnet_param_list_free(list);
    rnet_param_free(param);
    rnet_param_free(nullptr);
    rnet_param_list_free(nullptr);
}

TEST("threads read and set a parameter at the same time") {
    Domain domain;
    auto param = Param<double>::declare(domain.node, "gain", gain());
    std::vector<std::thread> threads;
    std::atomic<int> wrong{0};
    for (int t = 0; t < 4; ++t) {
        threads.emplace_back([&] {
            for (int i = 0; i < 200; ++i) {
                param.set(i % 10);
                const double value = param.get();
                if (value < 0.0 || value > 10.0) ++wrong;
            }
        });
    }
    for (auto& thread : threads) thread.join();
    CHECK(wrong == 0);
}

RNET_TEST_MAIN()
