#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "io/pickle_value.hpp"
#include "io/pickle_writer.hpp"

/// What a file of torch.save holds for tensors: which storages, and where in them each tensor lies. Pure.
namespace hortator::io {

struct PicklePlan {
  std::vector<std::pair<std::string, PickledTensor>> tensors = {};  ///< in the order in which they were given
  std::vector<at::Tensor> storages = {};  ///< number i is the record "i": its elements in row-major order
};

PicklePlan plan_pickle(const NamedTensors& tensors);

/// The pickle that says so.
std::string pickle_of(const PicklePlan& plan);

}  // namespace hortator::io
