#pragma once

#include <map>
#include <string>
#include <vector>

#include "formats/tensor/tensor_spec.hpp"

namespace hortator::checkpoint {

using TensorSpecs = std::map<std::string, formats::TensorSpec>;

/// Returns one line for each name that is missing, unexpected, or differs in shape or type. Pure.
std::vector<std::string> mismatches(const TensorSpecs& expected, const TensorSpecs& found);

}  // namespace hortator::checkpoint
