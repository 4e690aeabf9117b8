#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "formats/torch/pickle/value.hpp"
#include "formats/torch/pickle/writer.hpp"

/// Plans a torch.save file: its storages, and the position of each tensor in them. Pure.
namespace hortator::formats {

struct PicklePlan {
  struct Storage {
    at::ScalarType type = at::kFloat;
    std::int64_t elements = 0;

    std::int64_t bytes() const { return elements * static_cast<std::int64_t>(c10::elementSize(type)); }
  };

  std::vector<std::pair<std::string, PickledTensor>> tensors = {};  ///< in the given order
  std::vector<Storage> storages = {};                               ///< number i is the record "i"
};

/// Gives each tensor a storage of its own, in row-major order. Throws UsageError, naming the tensor, for repeated names
/// and for types that cannot be stored.
PicklePlan plan_pickle(const NamedSpecs& tensors);

/// Gives overlapping tensors one storage.
struct TiedPlan {
  PicklePlan plan = {};
  std::vector<at::Tensor> storages = {};  ///< each has the elements of the storage in row-major order
};
TiedPlan plan_tied_pickle(const NamedTensors& tensors);

/// The pickle of a plan.
std::string pickle_of(const PicklePlan& plan);

}  // namespace hortator::formats
