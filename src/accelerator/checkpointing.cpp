#include "accelerator/snapshot.hpp"
#include "base/activity.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "mpi/agree.hpp"
#include "mpi/collectives.hpp"

namespace hortator {

namespace fs = std::filesystem;

namespace {

void call(const std::vector<std::shared_ptr<StateHook>>& hooks, const fs::path& folder) {
  for (const auto& hook : hooks) {
    if (*hook) (*hook)(folder);
  }
}

StateHookHandle add(std::vector<std::shared_ptr<StateHook>>& hooks, StateHook hook) {
  return StateHookHandle(hooks.emplace_back(std::make_shared<StateHook>(std::move(hook))));
}

}  // namespace

StateHookHandle Accelerator::register_save_state_pre_hook(StateHook hook) {
  return add(training_->save_hooks, std::move(hook));
}

StateHookHandle Accelerator::register_load_state_pre_hook(StateHook hook) {
  return add(training_->load_hooks, std::move(hook));
}

fs::path Accelerator::save_state(const fs::path& dir) {
  const activity::PhaseScope phase(activity::Phase::checkpoint);
  const auto begin = accelerator::SavePace::Clock::now();
  const auto& host = training_->host();
  auto& project = training_->project;
  const bool by_default = dir.empty();
  if (by_default) project.set_iteration(mpi::broadcast(host, is_main_process() ? project.first_free_iteration() : 0));
  const auto target = by_default ? project.next_checkpoint() : dir;
  mpi::all_or_none(host, [&] { call(training_->save_hooks, target); });
  // Each rank writes a part of every tensor: what forward has changed on its own must be one rank's again.
  for (const auto& model : training_->models) model->share_buffers();
  checkpoint::Snapshot snapshot;
  mpi::all_or_none(
      host, [&] { snapshot = accelerator::take_snapshot(*training_, project.iteration() + (by_default ? 1 : 0)); });
  auto folder = checkpoint::save(host, target, snapshot);
  if (by_default) project.saved_one(is_main_process());
  training_->stopping.pace().saved(accelerator::SavePace::Clock::now() - begin);
  return folder;
}

bool Accelerator::has_checkpoint() const {
  const bool found = is_main_process() && training_->project.latest_checkpoint().has_value();
  return mpi::broadcast(training_->host(), found);
}

void Accelerator::load_state(const fs::path& dir) {
  const activity::PhaseScope phase(activity::Phase::checkpoint);
  const auto& host = training_->host();
  std::string found = dir.string();
  if (dir.empty()) {
    // Rank 0 chooses, so that a slow file system cannot make ranks load different ones.
    if (is_main_process()) found = training_->project.latest_checkpoint().value_or("").string();
    found = mpi::broadcast(host, std::string_view(found));
  }
  mpi::all_or_none(host, [&] {
    if (found.empty()) {
      throw UsageError({.what = text::concat("there is no checkpoint in ", training_->project.dir().string()),
                        .why = "load_state() without a folder loads the newest one of the project",
                        .hint = "ask has_checkpoint() first, or name the folder"});
    }
    call(training_->load_hooks, found);
    accelerator::restore_snapshot(*training_, checkpoint::Reader(found), process_index(), num_processes());
  });
  log::info("loaded ", found);
}

}  // namespace hortator
