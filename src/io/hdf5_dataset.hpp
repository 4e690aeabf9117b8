#pragma once

#include <cstdint>
#include <string>

#include "io/hdf5_handle.hpp"
#include "io/tensor_spec.hpp"

namespace hortator::io {

/// One tensor's place in a file: what it is and where its bytes begin. Elements lie in row-major order, without gaps.
struct StoredTensor {
  TensorSpec spec;
  std::int64_t offset = 0;  ///< in the file; of no meaning when there are no elements
};

/// A contiguous dataset with its space taken at once and nothing written into it. Groups in `name` are made.
StoredTensor create_dataset(const File& file, const std::string& name, const TensorSpec& spec);

/// What lies there; throws when it is not a tensor as create_dataset() makes them, inside the file's `file_bytes`.
StoredTensor inspect_dataset(const Dataset& dataset, const std::string& name, std::uint64_t file_bytes);

}  // namespace hortator::io
