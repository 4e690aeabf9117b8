#pragma once

#include <filesystem>
#include <optional>
#include <string>

/// One installation for several MPIs: a library, or a program that contains it, for each of them.
namespace hortator::mpi {

/// Where the same code is for another MPI.
struct OtherBuild {
  std::filesystem::path program = {};
  std::filesystem::path library_folder = {};  ///< goes first into LD_LIBRARY_PATH; empty if the program needs none

  friend bool operator==(const OtherBuild&, const OtherBuild&) = default;
};

/// The build for `family`, of the code that is in the file `code`: the program itself, or a library. Nothing if there
/// is none.
std::optional<OtherBuild> find_other_build(const std::filesystem::path& program, const std::filesystem::path& code,
                                           const std::string& family);

/// Starts the program again with the build for the launcher's MPI, where that is another one than `own` and there is a
/// build for it. To be called before MPI starts. Throws UsageError if HORTATOR_MPI_FAMILY asks for one that is not
/// there.
void restart_for_launcher(const std::string& own);

}  // namespace hortator::mpi
