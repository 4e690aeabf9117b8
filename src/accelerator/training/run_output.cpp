#include "accelerator/training/run_output.hpp"

#include <utility>

#include "observe/progress/progress_bar.hpp"

namespace hortator::accelerator {
namespace {

observe::Audience audience_of(const runtime::World& world) {
  return world.topology().local_rank == 0 ? observe::Audience::people : observe::Audience::nobody;
}

observe::TrackerRole place_of(const runtime::World& world) {
  return world.topology().rank == 0 ? observe::TrackerRole::writer : observe::TrackerRole::silent;
}

std::filesystem::path logging_dir(const ProjectOptions& options, const Project& project) {
  return options.logging_dir.empty() ? project.dir() / "logs" : options.logging_dir;
}

}  // namespace

RunOutput::RunOutput(const AcceleratorOptions& options, const runtime::World& world, std::function<void()> on_step)
    : project_(options.project),
      progress_(
          std::make_unique<observe::NotedProgress>(observe::make_progress(audience_of(world)), std::move(on_step))),
      trackers_(options.log_with, place_of(world), logging_dir(options.project, project_)),
      status_(world, project_.dir()) {}

}  // namespace hortator::accelerator
