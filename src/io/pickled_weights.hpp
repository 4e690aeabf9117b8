#pragma once

#include <filesystem>
#include <memory>

#include "io/weight_source.hpp"

namespace hortator::io {

/// A state dict in a file of torch.save.
std::unique_ptr<WeightSource> open_pickled_weights(const std::filesystem::path& path);

}  // namespace hortator::io
