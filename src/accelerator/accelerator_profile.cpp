#include <exception>
#include <hortator/accelerator.hpp>

#include "accelerator/training/training.hpp"
#include "mpi/agree.hpp"
#include "observe/profile/recorder.hpp"
#include "runtime/world.hpp"

namespace hortator {

Profile::Profile(runtime::World& world, const std::filesystem::path& default_dir, const ProfileOptions& options)
    : world_(world), exceptions_(std::uncaught_exceptions()) {
  const auto& folder = options.output_trace_dir.empty() ? default_dir : options.output_trace_dir;
  recorder_ =
      std::make_unique<observe::Recorder>(options, world.topology().rank, folder, machine::kind_of(world.device()));
}

Profile::~Profile() noexcept(false) {
  if (std::uncaught_exceptions() <= exceptions_) {
    mpi::all_or_none(world_.comm(), [&] { recorder_->finish(); });
    return;
  }
  // The recording may explain the failure; a second exception would terminate the program without a message.
  try {
    recorder_->finish();
  } catch (...) {
  }
}

Profile Accelerator::profile(const ProfileOptions& options) {
  return Profile(world(), project_dir() / "profile", options);
}

void Profile::step() { recorder_->step(); }

}  // namespace hortator
