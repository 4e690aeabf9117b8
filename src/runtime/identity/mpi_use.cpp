#include "runtime/identity/mpi_use.hpp"

#include <atomic>
#include <cstdlib>
#include <exception>

#include "mpi/environment.hpp"
#include "runtime/identity/launcher.hpp"

namespace hortator::runtime {
namespace {

// MPI exists once in a process, and so does the number of its users.
std::atomic<int> users = 0;
std::atomic<bool> last_left_by_exception = false;

void finalize_at_exit() {
  if (users == 0 && !last_left_by_exception) mpi::finalize_if_ours();
}

}  // namespace

void start_mpi() {
  if (!mpi::is_usable()) check_startable(launcher(), mpi::library_version());
  mpi::ensure_initialized();
  [[maybe_unused]] static const int registered = std::atexit(finalize_at_exit);
}

MpiUse::MpiUse() { ++users; }

MpiUse::~MpiUse() {
  --users;
  last_left_by_exception = std::uncaught_exceptions() > 0;
}

}  // namespace hortator::runtime
