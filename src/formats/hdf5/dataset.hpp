#pragma once

#include <cstdint>
#include <string>

#include "formats/hdf5/handle.hpp"
#include "formats/tensor/tensor_spec.hpp"

namespace hortator::formats {

/// One tensor's place in a file: what it is and where its bytes begin. Elements lie in row-major order, without gaps.
struct StoredTensor {
  TensorSpec spec;
  std::int64_t offset = 0;  ///< in the file; of no meaning when there are no elements
};

Dataset open_dataset(const File& file, const std::string& name);

/// What lies there; throws when it is not a tensor as StructureWriter makes them, inside the file's `file_bytes`.
StoredTensor inspect_dataset(const Dataset& dataset, const std::string& name, std::uint64_t file_bytes);

}  // namespace hortator::formats
