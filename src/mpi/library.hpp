#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

/// The MPI library in this process, which is not always the one that was compiled against: modules and LD_LIBRARY_PATH
/// decide.
namespace hortator::mpi {

std::string built_library();  ///< what was compiled against: "Open MPI v4.1.4"

/// The files of the MPI libraries in this process; more than one is a disaster.
std::vector<std::string> loaded_libraries();

/// Whether a program of one MPI works with the library of another: Open MPI keeps its binary interface within a major
/// release; MPICH, Intel MPI, Cray MPICH and MVAPICH share theirs.
bool is_compatible(std::string_view built, std::string_view loaded);

/// Throws, naming both, unless the library that was loaded is compatible and the only one.
void check_library(std::string_view built, std::string_view loaded, std::span<const std::string> files);
void check_library();

}  // namespace hortator::mpi
