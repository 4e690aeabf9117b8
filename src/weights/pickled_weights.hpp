#pragma once

#include <filesystem>
#include <memory>

#include "weights/weight_source.hpp"

namespace hortator::weights {

/// A state dict in a file of torch.save.
std::unique_ptr<WeightSource> open_pickled_weights(const std::filesystem::path& path);

}  // namespace hortator::weights
