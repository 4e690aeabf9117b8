#pragma once

/// The life of MPI in programs without hortator::run: started with the first world, finalised at the process's end.
namespace hortator::runtime {

/// Starts MPI unless it runs, and sees to its end. @collective over the world, the first time.
void start_mpi();

/// Held by whatever uses MPI. Who still holds one when the process ends has left in the middle (std::exit), and whoever
/// dropped it while an exception was on its way has left the others: MPI_Finalize would then wait for ranks that sit
/// elsewhere.
class MpiUse {
 public:
  MpiUse();
  ~MpiUse();
  MpiUse(const MpiUse&) = delete;
  MpiUse& operator=(const MpiUse&) = delete;
};

}  // namespace hortator::runtime
