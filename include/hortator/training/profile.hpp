#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <hortator/export.hpp>
#include <memory>
#include <optional>
#include <vector>

namespace hortator {

namespace runtime {
class World;
}
namespace observe {
class Recorder;
}

/// What a profile records.
enum class ProfilerActivity { cpu, cuda };

/// Which steps are recorded, counted by Profile::step(): after `skip_first` steps, cycles of `wait` steps without,
/// `warmup` steps with the profiler running but nothing kept, and `active` recorded steps.
struct ProfileSchedule {
  std::int64_t wait = 0;
  std::int64_t warmup = 0;
  std::int64_t active = 1;
  std::int64_t repeat = 0;  ///< so many cycles; 0: until the end
  std::int64_t skip_first = 0;
};

/// The reference's ProfileKwargs. What needs Python is not there: with_stack, with_modules (Python and TorchScript
/// frames) and with_flops (counts that only Python's tables show).
struct ProfileOptions {
  std::vector<ProfilerActivity> activities = {};        ///< none given: the CPU, and CUDA where the Accelerator uses it
  std::optional<ProfileSchedule> schedule_option = {};  ///< without it everything in the scope is one recording
  bool record_shapes = false;                           ///< sizes of operators' arguments
  bool profile_memory = false;                          ///< allocations
  /// One file a rank, profile_<rank>.json, in this folder (default: profile/ in the project's), for chrome://tracing,
  /// Perfetto or TensorBoard. Further cycles of a schedule: profile_<rank>.1.json, ...
  std::filesystem::path output_trace_dir = {};
  /// Called on this rank with each file once it is written.
  std::function<void(const std::filesystem::path&)> on_trace_ready = {};
};

/// Records what this thread does, and backward on its behalf, with LibTorch's profiler. Collectives between ranks are
/// ranges such as "hortator::all_reduce (node, 4.0 MiB)". One at a time. Made by Accelerator::profile().
class HORTATOR_API Profile {
 public:
  Profile(runtime::World& world, const std::filesystem::path& default_dir, const ProfileOptions& options);
  /// Writes the trace and waits until all ranks have; when writing failed on one, all throw. While an exception is on
  /// its way out it only writes, as far as it can. @collective
  ~Profile() noexcept(false);
  Profile(const Profile&) = delete;
  Profile& operator=(const Profile&) = delete;

  /// A step of training is over: schedule_option moves on. Recorded steps are ranges "ProfilerStep#<n>".
  void step();

 private:
  runtime::World& world_;
  std::unique_ptr<observe::Recorder> recorder_;
  int exceptions_;
};

}  // namespace hortator
