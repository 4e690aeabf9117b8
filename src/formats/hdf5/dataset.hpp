#pragma once

#include <cstdint>
#include <string>

#include "formats/hdf5/handle.hpp"
#include "formats/tensor/tensor_spec.hpp"

namespace hortator::formats {

/// A tensor in a file. Its elements are contiguous, in row-major order.
struct StoredTensor {
  TensorSpec spec;
  std::int64_t offset = 0;  ///< in the file; meaningless without elements
};

Dataset open_dataset(const File& file, const std::string& name);

/// Reads the description of a dataset. Throws unless StructureWriter may have written it and it lies within
/// `file_bytes`.
StoredTensor inspect_dataset(const Dataset& dataset, const std::string& name, std::uint64_t file_bytes);

}  // namespace hortator::formats
