// A setting that an operator changes while the robot moves.
//
// The arm declares its gain. Setting it to a value that is not allowed throws an error and changes nothing.
// In a terminal, `rnet param set /arm gain 2.5` does the same as the operator here.

#include <rnet/node.hpp>
#include <rnet/param.hpp>
#include <rnet/state.hpp>

#include <cassert>
#include <future>
#include <iomanip>
#include <iostream>

int main() {
    std::promise<double> changed;
    const rnet::Node arm("arm");
    rnet::ParamOptions<double> options;
    options.default_value = 1.0;
    options.min = 0.0;
    options.max = 10.0;
    options.unit = "1/s";
    options.description = "how hard the arm pulls towards its target";
    options.on_change = [&](double gain) { changed.set_value(gain); };
    const auto gain = rnet::Param<double>::declare(arm, "/gain", options);
    std::cout << std::fixed << std::setprecision(1) << "gain is " << gain.get() << '\n';

    const rnet::Node panel("operator");
    const rnet::State state = rnet::State::open(panel);
    try {
        state.set("/params/arm/gain", 11.0);
    } catch (const rnet::Error& error) {
        std::cout << "refused: " << error.what() << '\n';
    }
    state.set("/params/arm/gain", 2.5);

    std::cout << "gain is " << changed.get_future().get() << " now\n";
    // As in each iteration of a control loop.
    assert(gain.get() == 2.5);
}
