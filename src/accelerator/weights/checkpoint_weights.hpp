#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>

#include "io/weight_source.hpp"

namespace hortator::accelerator {

/// Number `model` of the models in a checkpoint of save_state(), or what io::open_weights() finds.
std::unique_ptr<io::WeightSource> open_weights_or_checkpoint(const std::filesystem::path& path, std::size_t model);

}  // namespace hortator::accelerator
