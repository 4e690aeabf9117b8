#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>

#include "weights/weight_source.hpp"

namespace hortator::accelerator {

/// Opens the weights of model number `model` in a checkpoint of save_state(), or what weights::open_weights() finds.
std::unique_ptr<weights::WeightSource> open_weights_or_checkpoint(const std::filesystem::path& path, std::size_t model);

}  // namespace hortator::accelerator
