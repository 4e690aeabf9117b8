#pragma once

#include <cstdint>
#include <filesystem>
#include <hortator/error.hpp>

#include "mpi/communicator.hpp"
#include "mpi/environment.hpp"
#include "observe/progress/progress_bar.hpp"
#include "weights/weight_source.hpp"

namespace hortator::tools::checkpoints {

/// The bytes of all tensors.
std::int64_t bytes_of(const weights::WeightSource& source);

/// Rank 0 shows progress.
observe::Audience audience_of(const mpi::Communicator& comm);

/// Writes the weights to a safetensors file, which appears when it is complete. Each rank holds one tensor at a time.
/// @collective
void write_safetensors(const mpi::Communicator& comm, const weights::WeightSource& source,
                       const std::filesystem::path& path);

/// Calls `work(comm)` on all ranks; initialises and finalises MPI unless the caller does.
template <typename Work>
int on_all_ranks(const Work& work) {
  mpi::ensure_initialized();
  try {
    work(mpi::Communicator::world());
  } catch (const Error& error) {
    if (error.rank()) mpi::finalize_if_ours();  // all ranks have thrown it together
    throw;
  }
  mpi::finalize_if_ours();
  return 0;
}

}  // namespace hortator::tools::checkpoints
