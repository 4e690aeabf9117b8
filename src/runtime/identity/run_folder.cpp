#include "runtime/identity/run_folder.hpp"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <hortator/error.hpp>
#include <mutex>

#include "core/environment/environment.hpp"
#include "core/log.hpp"
#include "core/text/text.hpp"
#include "core/time.hpp"
#include "core/whole_file.hpp"
#include "mpi/collectives.hpp"
#include "mpi/environment.hpp"
#include "runtime/identity/claim.hpp"
#include "runtime/identity/ending_file.hpp"
#include "runtime/identity/folder_lock.hpp"
#include "runtime/identity/launcher.hpp"
#include "runtime/identity/mpi_use.hpp"
#include "runtime/identity/outcome.hpp"

namespace hortator::runtime {
namespace {

struct Shared {
  std::mutex mutex;
  Run run;
  std::atomic<bool> stops_when_asked = false;
  std::atomic<bool> has_stopped = false;
};

Shared& shared() {
  static Shared instance;
  return instance;
}

void replace(Run run) {
  const std::scoped_lock lock(shared().mutex);
  shared().run = std::move(run);
  prepare_signal_ending(shared().run);
}

std::filesystem::path default_folder(std::string_view program) {
  const auto asked = core::process_variables()("HORTATOR_RUN_DIR");
  return asked && !asked->empty() ? std::filesystem::path(*asked)
                                  : std::filesystem::path("runs") / text::file_name(program);
}

// Reports to a launcher that asks for it what only the program knows, one line each: the run's folder, whether it stops
// when asked, and whether it has stopped.
bool publish_to_launcher(const std::filesystem::path& folder) {
  const auto note = core::process_variables()("HORTATOR_RUN_NOTE");
  if (!note || note->empty()) return false;
  const auto* asked = shared().stops_when_asked ? "stops when asked" : "";
  const auto* stopped = shared().has_stopped ? "stopped" : "";
  return core::write_whole(*note, *note + ".new", text::concat(folder.string(), '\n', asked, '\n', stopped, '\n'));
}

// Removes the outcome and failure of earlier runs.
void remove_stale(const std::filesystem::path& folder, std::string_view run_id) {
  remove_stale_failure(folder, run_id);
  remove_stale_outcome(folder);
}

// Starts MPI and lets the ranks agree on the run's name.
void join(Run run) {
  start_mpi();
  const auto comm = mpi::Communicator::world();
  check_together(launcher(), comm.size(), mpi::library_version());
  run.rank = comm.rank();
  run.world_size = comm.size();
  run.is_apart = false;
  log::set_identity(run.rank, run.host);

  // Removed before the broadcast: no rank can fail in this run before it knows the run's name.
  if (run.rank == 0) {
    publish_to_launcher(run.folder);
    if (!run.is_question) remove_stale(run.folder, "");
  }
  run.id = mpi::broadcast(comm, std::string_view(new_run_id()));
  replace(run);
}

}  // namespace

std::string new_run_id() {
  const auto now = std::chrono::system_clock::now();
  const auto seconds = std::chrono::system_clock::to_time_t(now);
  const auto micros = std::chrono::duration_cast<std::chrono::microseconds>(now.time_since_epoch()).count() % 1000000;
  return text::concat(core::utc(seconds, "%Y%m%dT%H%M%S"), '.', micros, '-', mpi::host_name(), '-', getpid());
}

Run current_run() {
  const std::scoped_lock lock(shared().mutex);
  auto run = shared().run;
  // A program without hortator::run has given neither its name nor its host.
  if (run.host.empty()) run.host = mpi::host_name();
  if (run.folder.empty()) run.folder = std::filesystem::absolute(default_folder(program_invocation_short_name));
  return run;
}

void begin_run(std::string_view program, bool is_question) {
  const auto& facts = launcher();
  Run run{.folder = std::filesystem::absolute(default_folder(program)),
          .rank = facts.rank.value_or(0),
          .host = mpi::host_name(),
          .is_apart = facts.size.value_or(1) > 1,
          .is_question = is_question};
  replace(run);
  try {
    join(run);
  } catch (Error& error) {
    // MPI starts, or fails to, in the same way on all ranks.
    if (!error.rank()) error.on_rank(0);
    throw;
  }
}

void set_run_folder(const std::filesystem::path& folder) {
  const std::scoped_lock lock(shared().mutex);
  auto& run = shared().run;
  run.folder = std::filesystem::absolute(folder);
  run.is_foreign_folder = false;
  run.is_question = false;
  prepare_signal_ending(run);
  if (run.rank != 0) return;
  publish_to_launcher(run.folder);
  remove_stale(run.folder, run.id);
}

void leave_run_folder(const std::filesystem::path& folder) {
  const auto own = current_run().folder;
  const std::scoped_lock lock(shared().mutex);
  shared().run.is_foreign_folder = one_path_of(own) == one_path_of(folder);
  prepare_signal_ending(shared().run);
}

void publish_that_it_stops() {
  const std::scoped_lock lock(shared().mutex);
  const auto& run = shared().run;
  shared().stops_when_asked = true;
  if (run.rank == 0 && !run.folder.empty()) publish_to_launcher(run.folder);
}

bool publish_that_it_has_stopped() {
  const std::scoped_lock lock(shared().mutex);
  shared().has_stopped = true;
  const auto& run = shared().run;
  return run.rank != 0 || publish_to_launcher(run.folder);
}

void set_run_rank(int rank) {
  const std::scoped_lock lock(shared().mutex);
  shared().run.rank = rank;
  prepare_signal_ending(shared().run);
}

}  // namespace hortator::runtime
