#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

/// Start and end of MPI in this process.
namespace hortator::mpi {

/// Initialises MPI unless that is done. If the application has initialised MPI, it must also finalise it. Throws where
/// the thread level does not let this thread call MPI. The first call is @collective over the world.
void ensure_initialized();

/// Throws if MPI's thread level is too low for a run on devices. On CPUs any level will do.
void require_level_for_devices();

bool is_usable();  ///< initialised and not finalised

/// Waits until all ranks have reached the end of the program, without a time limit, and returns the sum of their
/// numbers. Returns `own` where MPI has been finalised. @collective over the world
double arrive_at_end(double own);

/// Finalises MPI if ensure_initialized() has initialised it. Must not be called during stack unwinding: the other ranks
/// are in other collectives, and MPI_Finalize would wait for them for ever. @collective over the world
void finalize_if_ours();

/// Ends the whole job on all nodes with this exit code.
[[noreturn]] void abort_job(int exit_code);
bool is_aborting();  ///< abort_job() has been called: some MPIs end the process by std::exit

std::string host_name();
std::string library_version();  ///< "Open MPI v4.1.4"

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
