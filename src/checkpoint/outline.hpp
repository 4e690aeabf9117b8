#pragma once

#include <hortator/training/state_dict.hpp>
#include <string>
#include <variant>
#include <vector>

#include "formats/tensor/tensor_spec.hpp"

/// What a state holds, without the tensors' values: small enough to be sent to every rank.
namespace hortator::checkpoint {

struct Entry {
  std::string name;
  std::variant<std::int64_t, double, std::string, formats::TensorSpec> content = {};
};

using Outline = std::vector<Entry>;  ///< in the order of the names

Outline outline_of(const StateDict& state);

/// Nothing when they are the same, else the first entry that differs: "'a' is float32 [3] here and float32 [4] there".
std::string first_difference(const Outline& here, const Outline& there);

}  // namespace hortator::checkpoint
