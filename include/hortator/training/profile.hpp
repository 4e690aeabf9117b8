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

/// Which steps are recorded, counted by Profile::step(). After `skip_first` steps come cycles of `wait` steps without
/// the profiler, `warmup` steps with the profiler but without recording, and `active` recorded steps.
struct ProfileSchedule {
  std::int64_t wait = 0;
  std::int64_t warmup = 0;
  std::int64_t active = 1;
  std::int64_t repeat = 0;  ///< number of cycles; 0: until the end
  std::int64_t skip_first = 0;
};

/// Options of Accelerator::profile(); Accelerate's ProfileKwargs without the options that need Python: with_stack,
/// with_modules (Python and TorchScript frames) and with_flops (counts that only Python's tables show).
struct ProfileOptions {
  std::vector<ProfilerActivity> activities = {};        ///< default: the CPU, and CUDA if the Accelerator uses it
  std::optional<ProfileSchedule> schedule_option = {};  ///< without it the whole scope is one recording
  bool record_shapes = false;                           ///< shapes of operators' arguments
  bool profile_memory = false;                          ///< memory allocations
  /// The folder of the traces, profile_<rank>.json for each rank (default: profile/ in the project's folder). Open them
  /// in chrome://tracing, Perfetto or TensorBoard. Further cycles of a schedule are in profile_<rank>.1.json, ...
  std::filesystem::path output_trace_dir = {};
  /// Called on this rank with each file after it is written.
  std::function<void(const std::filesystem::path&)> on_trace_ready = {};
};

/// Records this thread, and its backward passes, with LibTorch's profiler. Collectives are ranges such as
/// "hortator::all_reduce (node, 4.0 MiB)", with ranges record_param_comms in them, which hold name, bytes, group and
/// sequence number as those of PyTorch do. `hortator trace` joins the traces of all ranks. Only one profile may exist
/// at a time. Create it by Accelerator::profile().
class HORTATOR_API Profile {
 public:
  /// If one rank cannot record, all throw. @collective
  Profile(runtime::World& world, const std::filesystem::path& default_dir, const ProfileOptions& options);
  /// Writes the trace and waits for all ranks. If one rank fails to write, all throw. During stack unwinding it only
  /// tries to write. @collective
  ~Profile() noexcept(false);
  Profile(const Profile&) = delete;
  Profile& operator=(const Profile&) = delete;

  /// Ends a training step, and advances schedule_option. Recorded steps are ranges "ProfilerStep#<n>".
  void step();

 private:
  runtime::World& world_;
  std::unique_ptr<observe::Recorder> recorder_;
  int exceptions_;
};

}  // namespace hortator
