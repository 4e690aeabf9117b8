#pragma once

#include <c10/core/ScalarType.h>

#include <optional>

#include "formats/hdf5/handle.hpp"

namespace hortator::formats {

/// The type under which elements of `type` lie in a file: the same bytes as in memory, so nothing is ever converted.
/// bf16, fp16 and fp8 are true HDF5 floats, bool is h5py's enumeration, complex numbers are h5py's pairs.
Type file_type(at::ScalarType type);

/// The other way round; nothing when `stored` is a type that no tensor has.
std::optional<at::ScalarType> scalar_type(const Type& stored);

}  // namespace hortator::formats
