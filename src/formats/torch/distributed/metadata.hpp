#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/tensor/tensor_spec.hpp"

/// The folders that torch.distributed.checkpoint writes: `.metadata`, and files with the parts of tensors.
namespace hortator::formats {

/// Where a torch.save archive is: within a file of the folder.
struct DistributedPlace {
  std::string file = {};
  std::uint64_t begin = 0;
  std::uint64_t bytes = 0;
};

/// A box of a tensor.
struct DistributedPart {
  std::vector<std::int64_t> offsets = {};  ///< of its first element in the tensor
  std::vector<std::int64_t> sizes = {};
  DistributedPlace place = {};

  std::int64_t elements() const;
};

/// The names of nested dicts, and the numbers of lists, that lead to a value.
using DistributedPath = std::vector<std::string>;

struct DistributedTensor {
  DistributedPath path = {};
  TensorSpec spec = {};
  std::vector<DistributedPart> parts = {};
};

/// A value that is not a tensor.
struct DistributedObject {
  DistributedPath path = {};
  DistributedPlace place = {};
};

struct DistributedMetadata {
  std::vector<DistributedTensor> tensors = {};
  std::vector<DistributedObject> objects = {};
};

/// Parses a `.metadata` file. If all values are in one dict, such as the "model" of Accelerate, paths begin in it. Each
/// tensor's parts fill it without overlap, and their files are in the folder itself; parts without elements are left
/// out. Throws PickleFault for everything else. Pure.
DistributedMetadata parse_distributed_metadata(std::string_view pickle);

}  // namespace hortator::formats
