#pragma once

#include <hortator/training/state_dict.hpp>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "formats/tensor/tensor_spec.hpp"

/// The names, types and small values of a state, without the tensors' elements: small enough to send to every rank.
namespace hortator::checkpoint {

struct OutlineEntry {
  std::string name;
  std::variant<std::int64_t, double, std::string, formats::TensorSpec> content = {};
};

using StateOutline = std::vector<OutlineEntry>;  ///< sorted by name

StateOutline outline_of(const StateDict& state);

/// Empty if both are equal, otherwise a description of the first entry that differs:
/// "'a' is float32 [3] here and float32 [4] there".
std::string first_difference(const StateOutline& here, const StateOutline& there);

/// An outline as bytes, to send it between ranks. Equal outlines give equal bytes on every rank.
std::string pack(const StateOutline& outline);
/// `bytes` must come from pack().
StateOutline unpack(std::string_view bytes);

}  // namespace hortator::checkpoint
