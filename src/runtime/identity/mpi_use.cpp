#include "runtime/identity/mpi_use.hpp"

#include <atomic>
#include <cstdlib>
#include <exception>

#include "core/environment/environment.hpp"
#include "machine/shapes/counted_memory.hpp"
#include "machine/shapes/shape_operators.hpp"
#include "mpi/environment.hpp"
#include "mpi/rehearsed_world.hpp"
#include "runtime/identity/launcher.hpp"

namespace hortator::runtime {
namespace {

// MPI exists once in a process, and so does the number of its users.
std::atomic<int> users = 0;
std::atomic<bool> last_left_by_exception = false;

void finalize_at_exit() {
  if (users == 0 && !last_left_by_exception) mpi::finalize_if_ours();
}

void start_rehearsal_if_asked() {
  if (mpi::rehearsed_world()) {
    machine::count_memory(machine::CountedMemory::reserved);
    machine::compute_shapes_only();
  } else if (core::variable("HORTATOR_MEMORY_REPORT")) {
    machine::count_memory(machine::CountedMemory::used);
  }
}

}  // namespace

void start_mpi() {
  if (!mpi::is_usable()) check_startable(launcher(), mpi::library_version());
  mpi::ensure_initialized();
  start_rehearsal_if_asked();
  [[maybe_unused]] static const int registered = std::atexit(finalize_at_exit);
}

MpiUse::MpiUse() { ++users; }

MpiUse::~MpiUse() {
  --users;
  last_left_by_exception = std::uncaught_exceptions() > 0;
}

}  // namespace hortator::runtime
