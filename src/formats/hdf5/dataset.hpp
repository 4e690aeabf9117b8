#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <optional>
#include <string>

#include "formats/hdf5/handle.hpp"
#include "formats/tensor/tensor_spec.hpp"

namespace hortator::formats {

/// Returns the HDF5 type with the same bytes as `type` in memory, so that nothing is ever converted. bf16, fp16 and fp8
/// are HDF5 floats, bool is h5py's enumeration, complex numbers are h5py's compounds.
Type file_type(at::ScalarType type);

/// The inverse of file_type(); nothing if no tensor has the type `stored`.
std::optional<at::ScalarType> scalar_type(const Type& stored);

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
