#pragma once

#include <c10/core/ScalarType.h>

#include <optional>

#include "formats/hdf5/handle.hpp"

namespace hortator::formats {

/// Returns the HDF5 type with the same bytes as `type` in memory, so that nothing is ever converted. bf16, fp16 and fp8
/// are HDF5 floats, bool is h5py's enumeration, complex numbers are h5py's compounds.
Type file_type(at::ScalarType type);

/// The inverse of file_type(); nothing if no tensor has the type `stored`.
std::optional<at::ScalarType> scalar_type(const Type& stored);

}  // namespace hortator::formats
