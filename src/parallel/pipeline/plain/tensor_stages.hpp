#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "parallel/pipeline/stage_map.hpp"

namespace hortator::parallel {

/// The stages of the parameters and buffers of a module.
class TensorStages {
 public:
  struct Entry {
    std::string name;         ///< the first one
    std::vector<int> stages;  ///< in which it is read, in this order
    bool is_parameter = true;
  };

  TensorStages(const torch::nn::Module& module, const StageMap& map);

  /// Null: a tensor that is not the module's.
  const Entry* find(const at::Tensor& tensor) const;
  /// A parameter or buffer of the stage, by name; "" if it has none.
  std::string name_in(int stage) const;

 private:
  std::unordered_map<const void*, Entry> entries_;  ///< by TensorImpl
};

/// Counts how often a forward pass reads each tensor. A tied parameter is read in each of its stages in turn.
class ReadsInTurn {
 public:
  /// The stage in which an operator of a pass that has come to stage `now` reads the tensor; before `now`: it should
  /// have been read there.
  int stage_of_next(const TensorStages::Entry& entry, int now);

 private:
  std::map<const TensorStages::Entry*, std::size_t> reads_;
};

}  // namespace hortator::parallel
