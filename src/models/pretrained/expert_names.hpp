#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "formats/tensor/tensor_spec.hpp"
#include "weights/module_weights.hpp"

/// The files of Mixtral have a tensor for each expert and layer of it, "block_sparse_moe.experts.0.w1.weight"; a
/// model's parameters hold all experts, "mlp.experts.gate_up_proj". transformers writes the former, and reads both.
namespace hortator::models {

/// A weight of a model, or the rows of one expert in it, as a file has it.
struct StoredPart {
  /// Rows of one expert's matrix.
  struct ExpertRows {
    std::int64_t expert = 0, begin = 0, size = 0;
  };

  std::string name = {};
  std::size_t weight = 0;  ///< the index of the weight
  std::optional<ExpertRows> rows = {};

  /// The part of `weight`'s tensor: a view. The tensor must have memory.
  at::Tensor of(const at::Tensor& tensor) const;
  /// Its type and shape.
  formats::TensorSpec spec(const at::Tensor& tensor) const;
};

/// The parts of the weights: of those that hold all experts, those of each expert.
std::vector<StoredPart> parts_by_expert(const std::vector<weights::ModuleWeight>& all);

/// The parts in the form of a file with the names `stored`.
std::vector<StoredPart> stored_parts(const std::vector<weights::ModuleWeight>& all,
                                     const std::vector<std::string>& stored);

}  // namespace hortator::models
