#pragma once

#include <ATen/core/Generator.h>
#include <c10/core/Device.h>

namespace hortator::runtime {

/// The generator that random operators on `device` draw from unless they are given another.
at::Generator default_generator(c10::Device device);

/// A generator's state as bytes on the CPU, and back.
at::Tensor generator_state(at::Generator generator);
void set_generator_state(at::Generator generator, const at::Tensor& state);

}  // namespace hortator::runtime
