#include "accelerator/training/run_output.hpp"

#include <chrono>
#include <utility>

#include "core/activity/activity.hpp"
#include "core/activity/updates.hpp"
#include "core/environment/environment.hpp"
#include "mpi/agree.hpp"
#include "observe/progress/progress_bar.hpp"
#include "runtime/identity/run_folder.hpp"

namespace hortator::accelerator {
namespace {

observe::Audience audience_of(const runtime::World& world) {
  return world.topology().local_rank == 0 ? observe::Audience::people : observe::Audience::nobody;
}

std::filesystem::path logging_dir(const ProjectOptions& options, const Project& project) {
  return options.logging_dir.empty() ? project.dir() / "logs" : options.logging_dir;
}

runtime::LockHolder holder_of(const mpi::Communicator& comm) {
  auto self = runtime::lock_holder();
  self.ranks = comm.size();
  return self;
}

bool only_estimates() { return core::variable("HORTATOR_ESTIMATE").has_value(); }

/// Another Accelerator of the job may hold the folder, because this one may only read there. @collective
std::optional<runtime::FolderLock> locked(const runtime::World& world, const std::filesystem::path& folder) {
  const activity::PhaseScope phase(activity::Phase::one_side_first);  // the run before may still be saving
  std::optional<runtime::FolderLock> lock;
  try {
    mpi::all_or_none(world.comm(), [&] {
      if (world.comm().rank() == 0 && !only_estimates()) lock.emplace(folder, holder_of(world.comm()));
    });
  } catch (...) {
    runtime::leave_run_folder(folder);
    throw;
  }
  return lock;
}

}  // namespace

RunOutput::RunOutput(const AcceleratorOptions& options, const runtime::World& world, std::function<void()> on_step)
    : project_(options.project),
      lock_(locked(world, project_.dir())),
      node_levels_(only_estimates() ? NodeLevels() : open_levels(options, world, project_.dir())),
      save_interval_(SaveInterval::of(options.checkpoint)),
      progress_(
          std::make_unique<observe::NotedProgress>(observe::make_progress(audience_of(world)), std::move(on_step))),
      trackers_(options.log_with, world.topology().rank, logging_dir(options.project, project_)),
      status_(world, project_.dir()) {
  const auto& topology = world.topology();
  if (options.project.save_on_each_node && topology.nodes > 1)
    own_node_ = {.number = topology.node, .is_leader = topology.is_leader()};
}

void RunOutput::resume_after(std::int64_t updates) {
  updates_before_ += updates - this->updates();
  activity::note_updates_before(updates_before_);
}

void RunOutput::claim_project(const runtime::World& world) {
  if (world.comm().rank() != 0 || only_estimates() || lock_->is_held()) return;
  lock_.emplace(project_.dir(), holder_of(world.comm()), std::chrono::milliseconds(0),
                runtime::OtherRanks::are_refused);
}

}  // namespace hortator::accelerator
