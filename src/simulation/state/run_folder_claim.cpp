#include "simulation/state/run_folder_claim.hpp"

#include <hortator/error.hpp>
#include <map>
#include <mutex>

#include "core/activity/activity.hpp"
#include "core/environment/environment.hpp"
#include "core/text/text.hpp"
#include "runtime/identity/run_folder.hpp"
#include "simulation/calls/local_outcome.hpp"

namespace hortator::simulation {
namespace {

namespace fs = std::filesystem;

/// The folders of this process's runs, and the settings of each run.
struct Claimed {
  std::mutex mutex;
  std::map<fs::path, std::string> folders;
};

Claimed& claimed() {
  static auto& instance = *new Claimed();
  return instance;
}

runtime::LockHolder holder(const std::string& settings) {
  auto self = runtime::lock_holder();
  self.part = text::concat("the run of ", settings, " (", runtime::new_run_id(), ")");
  return self;
}

}  // namespace

RunFolderClaim::Entry::Entry(fs::path folder, const std::string& settings) : folder_(std::move(folder)) {
  const std::scoped_lock lock(claimed().mutex);
  const auto [other, is_new] = claimed().folders.emplace(folder_, settings);
  if (is_new) return;
  throw UsageError({.what = text::concat("The run of ", settings, " and the run of ", other->second,
                                         ", which has not ended, have one folder: ", folder_.string()),
                    .why = "each would replace the other's checkpoints and logs",
                    .hint = "give each run a run_dir of its own in its settings, or end the other run first"});
}

RunFolderClaim::Entry::~Entry() {
  const std::scoped_lock lock(claimed().mutex);
  claimed().folders.erase(folder_);
}

RunFolderClaim::RunFolderClaim(const mpi::Communicator& comm, const fs::path& folder, const std::string& settings) {
  all_succeed(comm, [&] { entry_.emplace(runtime::one_path_of(folder), settings); });
  const activity::PhaseScope phase(activity::Phase::one_side_first);  // the run before may still be saving
  try {
    all_succeed(comm, [&] {
      if (comm.rank() == 0 && !core::variable("HORTATOR_ESTIMATE")) lock_.emplace(folder, holder(settings));
    });
  } catch (...) {
    runtime::leave_run_folder(folder);
    throw;
  }
}

}  // namespace hortator::simulation
