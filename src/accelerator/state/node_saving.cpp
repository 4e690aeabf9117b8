#include "accelerator/state/node_saving.hpp"

#include <algorithm>

#include "accelerator/channels/channels.hpp"
#include "accelerator/prepared/prepared.hpp"
#include "accelerator/state/saved_mesh.hpp"
#include "accelerator/state/snapshot.hpp"
#include "accelerator/training/run_output.hpp"
#include "accelerator/training/training.hpp"
#include "checkpoint/manifest.hpp"
#include "checkpoint/read/reader.hpp"
#include "core/activity/activity.hpp"
#include "formats/file/file_error.hpp"
#include "mpi/agree.hpp"
#include "mpi/collectives.hpp"

namespace hortator::accelerator {
namespace {

std::optional<std::int64_t> updates_of_newest(const Project& project) {
  for (const auto& folder : project.checkpoints()) {
    if (project.is_damaged(folder)) continue;
    try {
      const auto manifest = checkpoint::read_manifest(folder);
      if (checkpoint::is_whole(folder, manifest)) return manifest.updates;
    } catch (const formats::FileError&) {  // load_state() warns of it, and skips it as well
      continue;
    }
  }
  return {};
}

// @collective
std::vector<NodeCheckpoints*> due_levels(const Training& training) {
  std::vector<NodeCheckpoints*> due;
  for (const auto& level : training.output.node_levels()) {
    if (mpi::broadcast(training.host(), level->is_due(training.output.updates()))) due.push_back(level.get());
  }
  return due;
}

}  // namespace

// As Accelerator::save_state(), without the folder of the project.
void save_on_nodes(Training& training) {
  if (!training.prepared.save_hooks().empty()) {
    for (const auto& level : training.output.node_levels())
      level->turn_off("the program has state hooks, whose files nodes do not hold");
    return;
  }
  // Within LocalSGD a save would give all ranks the optimizer's state of one, and change the run: it waits.
  const auto is_apart = [](const auto& model) { return model->is_apart(); };
  if (std::ranges::any_of(training.prepared.models(), is_apart)) return;
  const activity::PhaseScope phase(activity::Phase::checkpoint);
  training.settle_seed();
  mpi::all_or_none(training.host(), [&] {
    for (const auto& model : training.prepared.models()) model->require_equal("a checkpoint in memory");
    training.output.trackers().flush();
  });
  for (const auto& model : training.prepared.models()) model->share_buffers();
  const auto due = due_levels(training);
  const auto& project = training.output.project();
  const auto snapshot = take_snapshot(training, project.iteration());
  for (auto* level : due) {
    level->take(snapshot, {.step = project.iteration(),
                           .updates = training.output.updates(),
                           .mesh = mesh_of(training.channels.mesh().shape()),
                           .shares_frozen = training.options().checkpoint.incremental});
  }
}

std::optional<std::int64_t> updates_on_disk(const Training& training) {
  constexpr std::int64_t none = -1;
  std::int64_t updates = none;
  mpi::all_or_none(training.host(), [&] {
    if (training.host().rank() == 0) updates = updates_of_newest(training.output.project()).value_or(none);
  });
  updates = mpi::broadcast(training.host(), updates);
  return updates == none ? std::nullopt : std::optional(updates);
}

}  // namespace hortator::accelerator
