#pragma once

#include <hortator/training/accelerator_options.hpp>

namespace hortator::accelerator {

/// The options as they are. UsageError where one has no meaning, or two exclude each other.
AcceleratorOptions checked(AcceleratorOptions options);

}  // namespace hortator::accelerator
