#pragma once

#include <ATen/core/Generator.h>

#include "support/sim/streams.hpp"

namespace hortator::sim {

/// The generator of a device. Numbers are a function of the seed and the offset at which an operator begins.
const at::Generator& default_generator(int device);
at::Generator new_generator(int device);

/// Takes numbers of a generator (the device's default one if it is not defined) for an operator that is submitted now.
Dice roll(at::Generator generator, int stream, std::uint64_t numbers);
/// Takes numbers of the device's default generator.
Dice reserve_numbers(int device, std::uint64_t numbers);

/// A generator of the CPU that yields the numbers of `dice`.
at::Generator cpu_generator(const Dice& dice);

}  // namespace hortator::sim
