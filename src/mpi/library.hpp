#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

/// The MPI library in this process. It may differ from the one that was compiled against: modules and LD_LIBRARY_PATH
/// decide.
namespace hortator::mpi {

std::string built_library();  ///< the one that was compiled against: "Open MPI v4.1.4"

/// The files of the MPI libraries in this process. A process with more than one cannot work.
std::vector<std::string> loaded_libraries();

/// Whether a program built with one MPI works with the library of another. Open MPI keeps its binary interface within a
/// major release; MPICH, Intel MPI, Cray MPICH and MVAPICH share one.
bool is_compatible(std::string_view built, std::string_view loaded);

/// Throws unless the loaded library is compatible and the only one. The error names both.
void check_library(std::string_view built, std::string_view loaded, std::span<const std::string> files);
void check_library();

}  // namespace hortator::mpi
