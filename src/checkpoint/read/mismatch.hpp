#pragma once

#include <map>
#include <string>
#include <vector>

#include "formats/tensor/tensor_spec.hpp"

namespace hortator::checkpoint {

using TensorSpecs = std::map<std::string, formats::TensorSpec>;

/// One line for each name that is missing, unexpected or of another shape or type. Pure.
std::vector<std::string> mismatches(const TensorSpecs& expected, const TensorSpecs& found);

}  // namespace hortator::checkpoint
