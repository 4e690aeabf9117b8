#pragma once

#include <string>
#include <string_view>
#include <vector>

/// The HDF5 in this process, which is not always the one that was compiled against: modules and LD_LIBRARY_PATH decide.
namespace hortator::formats {

std::string built_hdf5_version();  ///< of the one that was compiled against: "HDF5 1.10.8"

struct Hdf5Library {
  std::string version = "";              ///< "HDF5 1.10.8"
  std::string file = "";                 ///< where it was loaded from; empty: it is a part of the program
  std::vector<std::string> others = {};  ///< other libraries' own ones: Debian's serial one lives beside the parallel
  bool is_parallel = true;
};

Hdf5Library loaded_hdf5();

/// Throws, naming both, unless the loaded one is parallel, and of the minor release that was `built` with: others have
/// other data structures, a serial one lacks calls, and HDF5 itself would end the process without a word of ours.
void check_hdf5(std::string_view built, const Hdf5Library& loaded);

}  // namespace hortator::formats
