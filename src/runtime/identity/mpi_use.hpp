#pragma once

/// MPI in programs without hortator::run: started with the first world and finalised when the process exits.
namespace hortator::runtime {

/// Starts MPI unless it runs, and arranges that it is finalised. The first call is @collective over the world.
void start_mpi();

/// Held by every object that uses MPI. MPI is not finalised if one still exists when the process exits (std::exit in
/// the middle) or was destroyed during stack unwinding: MPI_Finalize would wait for ranks that are in other
/// collectives.
class MpiUse {
 public:
  MpiUse();
  ~MpiUse();
  MpiUse(const MpiUse&) = delete;
  MpiUse& operator=(const MpiUse&) = delete;
};

}  // namespace hortator::runtime
