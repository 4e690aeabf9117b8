#include <ATen/Context.h>

#include <hortator/error.hpp>
#include <hortator/training/random.hpp>

#include "machine/device/cublas_workspace.hpp"
#include "mpi/communicator.hpp"
#include "mpi/environment.hpp"
#include "runtime/draw_together.hpp"
#include "runtime/identity/run_folder.hpp"

namespace hortator {
namespace {

std::optional<std::uint64_t> number_of_group;

std::uint64_t rank_of_this_process() {
  if (number_of_group) return *number_of_group;
  if (!mpi::is_usable()) {
    throw UsageError({.what = "set_seed with device_specific does not know its rank yet",
                      .why = "MPI has not started",
                      .hint = "call it within hortator::run, or after the State or Accelerator is made"});
  }
  return static_cast<std::uint64_t>(runtime::current_run().rank);
}

}  // namespace

void runtime::draw_with(std::optional<std::uint64_t> number) { number_of_group = number; }

void set_seed(std::uint64_t seed, const SeedOptions& options) {
  at::manual_seed(options.device_specific ? seed + rank_of_this_process() : seed);
  if (!options.deterministic) return;
  at::globalContext().setDeterministicAlgorithms(true, false);
  at::globalContext().setDeterministicCuDNN(true);
  machine::fix_cublas_workspace();
  at::globalContext().setBenchmarkCuDNN(false);
}

}  // namespace hortator
