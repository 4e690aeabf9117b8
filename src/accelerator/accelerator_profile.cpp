#include <chrono>
#include <exception>
#include <hortator/accelerator.hpp>

#include "accelerator/training/training.hpp"
#include "mpi/agree.hpp"
#include "mpi/collectives.hpp"
#include "mpi/environment.hpp"
#include "observe/profile/recorder.hpp"
#include "runtime/world.hpp"

namespace hortator {
namespace {

std::int64_t nanoseconds_now() {
  using namespace std::chrono;
  return duration_cast<nanoseconds>(system_clock::now().time_since_epoch()).count();
}

// @collective
observe::TraceOrigin trace_origin(const runtime::World& world) {
  constexpr int rounds = 16;  // the first ones also bring the ranks together
  observe::TraceOrigin origin{.rank = world.topology().rank, .world = world.topology().size, .host = mpi::host_name()};
  for (int round = 0; round < rounds && origin.world > 1; ++round) {
    const auto entered = nanoseconds_now();
    mpi::barrier(world.comm());
    origin.barriers.emplace_back(entered, nanoseconds_now());
  }
  return origin;
}

}  // namespace

Profile::Profile(runtime::World& world, const std::filesystem::path& default_dir, const ProfileOptions& options)
    : world_(world), exceptions_(std::uncaught_exceptions()) {
  const auto& folder = options.output_trace_dir.empty() ? default_dir : options.output_trace_dir;
  auto origin = trace_origin(world);
  mpi::all_or_none(world.comm(), [&] {
    recorder_ =
        std::make_unique<observe::Recorder>(options, std::move(origin), folder, machine::kind_of(world.device()));
  });
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
