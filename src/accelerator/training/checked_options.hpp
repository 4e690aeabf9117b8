#pragma once

#include <hortator/training/accelerator_options.hpp>

namespace hortator::accelerator {

/// Returns the options unchanged. UsageError if one is invalid or two exclude each other.
AcceleratorOptions checked(AcceleratorOptions options);

}  // namespace hortator::accelerator
