#pragma once

#include <string>

/// The life of MPI in this process.
namespace hortator::mpi {

/// Initialises MPI if nobody has, and checks the thread level. @collective over the world, the first time.
/// MPI that is already initialised by the application is left to it, also at the end.
void ensure_initialized();

bool is_usable();  ///< initialised and not finalised

/// All ranks have come to the program's end, however long some take. @collective over the world; nothing where MPI has
/// been finalised.
void arrive_at_end();

/// Finalises MPI if it is ours. @collective over the world. Never called while an exception is on its way out:
/// the other ranks sit in other collectives, and MPI_Finalize would wait for them for ever.
void finalize_if_ours();

/// Ends the whole job, on all nodes, with this code.
[[noreturn]] void abort_job(int exit_code);
bool is_aborting();  ///< some MPIs leave by std::exit

std::string host_name();
std::string library_version();  ///< "Open MPI v4.1.4"

}  // namespace hortator::mpi
