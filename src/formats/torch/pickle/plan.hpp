#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "formats/torch/pickle/value.hpp"
#include "formats/torch/pickle/writer.hpp"

/// What a file of torch.save holds for tensors: which storages, and where in them each tensor lies. Pure.
namespace hortator::formats {

struct PicklePlan {
  struct Storage {
    at::ScalarType type = at::kFloat;
    std::int64_t elements = 0;

    std::int64_t bytes() const { return elements * static_cast<std::int64_t>(c10::elementSize(type)); }
  };

  std::vector<std::pair<std::string, PickledTensor>> tensors = {};  ///< in the order in which they were given
  std::vector<Storage> storages = {};                               ///< number i is the record "i"
};

/// Each tensor has a storage of its own, of its elements in row-major order. UsageError, naming the tensor, for names
/// that come twice and for types that cannot be stored.
PicklePlan plan_pickle(const NamedSpecs& tensors);

/// Tensors that overlap have one storage.
struct TiedPlan {
  PicklePlan plan = {};
  std::vector<at::Tensor> storages = {};  ///< whose elements in row-major order are those of the storage
};
TiedPlan plan_tied_pickle(const NamedTensors& tensors);

/// The pickle that says so.
std::string pickle_of(const PicklePlan& plan);

}  // namespace hortator::formats
