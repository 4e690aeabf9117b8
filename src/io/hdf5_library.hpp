#pragma once

#include <string>
#include <string_view>

namespace hortator::io {

std::string hdf5_version();        ///< of the library that is loaded: "HDF5 1.10.8"
std::string built_hdf5_version();  ///< of the one that was compiled against

/// Throws, naming both, unless the loaded one is of the same minor release: others have other data structures, and HDF5
/// itself would end the process.
void check_hdf5_version(std::string_view built, std::string_view loaded);

}  // namespace hortator::io
