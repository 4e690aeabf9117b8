#pragma once

#include <ATen/core/Generator.h>
#include <c10/core/Device.h>

namespace hortator::runtime {

/// The generator that random operators on `device` use by default.
at::Generator default_generator(c10::Device device);

/// Gets and sets a generator's state as a tensor of bytes on the CPU.
at::Tensor generator_state(at::Generator generator);
void set_generator_state(at::Generator generator, const at::Tensor& state);

}  // namespace hortator::runtime
