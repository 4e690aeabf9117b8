#pragma once

#include <string>
#include <string_view>
#include <vector>

/// The HDF5 library in this process. Modules and LD_LIBRARY_PATH may load another one than was compiled against.
namespace hortator::formats {

std::string built_hdf5_version();  ///< the version that was compiled against: "HDF5 1.10.8"

struct Hdf5Library {
  std::string version = "";  ///< "HDF5 1.10.8"
  std::string file = "";     ///< path of the loaded library; empty if it is linked into the program
  std::vector<std::string> others =
      {};  ///< further HDF5 libraries in the process, such as Debian's serial one next to the parallel one
  bool is_parallel = true;
};

Hdf5Library loaded_hdf5();

/// Throws, naming both versions, unless the loaded library is parallel and of the same minor release as `built`: other
/// releases have other data structures, a serial one misses functions, and HDF5 itself would abort the process.
void check_hdf5(std::string_view built, const Hdf5Library& loaded);

}  // namespace hortator::formats
