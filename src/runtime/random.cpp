#include <ATen/Context.h>

#include <hortator/error.hpp>
#include <hortator/training/random.hpp>

#include "machine/device/cublas_workspace.hpp"
#include "mpi/communicator.hpp"
#include "mpi/environment.hpp"
#include "runtime/draw_together.hpp"
#include "runtime/run_folder.hpp"

namespace hortator {
namespace {

int ranks_that_draw_together = 1;

std::uint64_t rank_of_this_process() {
  if (!mpi::is_usable()) {
    throw UsageError({.what = "set_seed with device_specific does not know its rank yet",
                      .why = "MPI has not started",
                      .hint = "call it within hortator::run, or after the State or Accelerator is made"});
  }
  return static_cast<std::uint64_t>(runtime::current_run().rank / ranks_that_draw_together);
}

}  // namespace

void runtime::draw_together(int ranks) { ranks_that_draw_together = ranks; }

void set_seed(std::uint64_t seed, const SeedOptions& options) {
  at::manual_seed(options.device_specific ? seed + rank_of_this_process() : seed);
  if (!options.deterministic) return;
  at::globalContext().setDeterministicAlgorithms(true, false);
  at::globalContext().setDeterministicCuDNN(true);
  machine::fix_cublas_workspace();
  at::globalContext().setBenchmarkCuDNN(false);
}

}  // namespace hortator
