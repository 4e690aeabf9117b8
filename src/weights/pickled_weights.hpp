#pragma once

#include <filesystem>
#include <memory>

#include "weights/weight_source.hpp"

namespace hortator::weights {

/// Opens a state dict that torch.save wrote. Throws FileError.
std::unique_ptr<WeightSource> open_pickled_weights(const std::filesystem::path& path);

}  // namespace hortator::weights
