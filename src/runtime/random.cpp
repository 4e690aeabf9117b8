#include <ATen/Context.h>

#include <atomic>
#include <cstdlib>
#include <hortator/error.hpp>
#include <hortator/random.hpp>

#include "mpi/communicator.hpp"
#include "mpi/environment.hpp"
#include "runtime/run_folder.hpp"
#include "runtime/seed.hpp"

namespace hortator {
namespace {

// LibTorch's default generators are the process's, and so is the seed that they were given.
std::atomic<bool> is_seeded = false;
std::atomic<std::uint64_t> given = 0;

std::uint64_t rank_of_this_process() {
  if (!mpi::is_usable()) {
    throw UsageError({.what = "set_seed with device_specific does not know its rank yet",
                      .why = "MPI has not started",
                      .hint = "call it within hortator::run, or after the State or Accelerator is made"});
  }
  return static_cast<std::uint64_t>(runtime::current_run().rank);
}

}  // namespace

std::optional<std::uint64_t> runtime::base_seed() {
  return is_seeded ? std::optional<std::uint64_t>(given.load()) : std::nullopt;
}

void set_seed(std::uint64_t seed, const SeedOptions& options) {
  at::manual_seed(options.device_specific ? seed + rank_of_this_process() : seed);
  given = seed;
  is_seeded = true;
  if (!options.deterministic) return;
  at::globalContext().setDeterministicAlgorithms(true, false);
  at::globalContext().setDeterministicCuDNN(true);
  // cuBLAS asks it of the environment, and LibTorch refuses products without it.
  setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", /*replace=*/0);
  at::globalContext().setBenchmarkCuDNN(false);
}

}  // namespace hortator
