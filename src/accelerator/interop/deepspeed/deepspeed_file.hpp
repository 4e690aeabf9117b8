#pragma once

#include <hortator/interop/deepspeed.hpp>

#include "core/environment/environment.hpp"

namespace hortator::accelerator {

/// read_deepspeed() with the launcher's `variables`, from which the file's "auto" entries take stage and clipping.
DeepspeedConfig read_deepspeed_file(const std::filesystem::path& file, const AcceleratorOptions& run,
                                    const core::Variables& variables);

}  // namespace hortator::accelerator
