#pragma once

#include <string>

namespace hortator::io {

std::string hdf5_version();  ///< of the library that is loaded: "HDF5 1.10.8"

}  // namespace hortator::io
