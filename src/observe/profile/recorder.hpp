#pragma once

#include <ATen/record_function.h>

#include <cstdint>
#include <filesystem>
#include <hortator/training/profile.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "machine/device/device.hpp"
#include "observe/profile/profile_plan.hpp"

namespace hortator::observe {

/// What is recorded in a run on that kind of device; null: on the CPU. Throws UsageError for activities of a device in
/// a run on the CPU.
std::set<torch::profiler::impl::ActivityType> activities_of(const ProfileOptions& options,
                                                            const machine::DeviceKind* kind);

/// What a trace says of its rank, for programs that join the traces of all ranks.
struct TraceOrigin {
  int rank = 0;
  int world = 1;  ///< number of ranks
  std::string host = {};
  /// Barriers of all ranks, as this rank's clock saw them: entered and left, in nanoseconds since 1970. No rank leaves
  /// one before all have entered it, which bounds the differences of clocks.
  std::vector<std::pair<std::int64_t, std::int64_t>> barriers = {};
};

/// Runs LibTorch's profiler on this thread, following a schedule. Only one may exist in a process; the constructor
/// throws UsageError for a second one.
class Recorder {
 public:
  /// Writes traces to profile_<rank>.json in `folder`.
  Recorder(ProfileOptions options, TraceOrigin origin, std::filesystem::path folder, const machine::DeviceKind* kind);
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  void step();
  /// Writes the current recording. Further calls do nothing.
  void finish();

 private:
  void begin_step();
  void end_step();
  void prepare();
  void start();
  void stop_and_save();
  std::filesystem::path next_file() const;

  enum class RecorderState { idle, prepared, recording };
  /// Reserves LibTorch's profiler: a process has one.
  struct ProfilerClaim {
    ProfilerClaim();
    ~ProfilerClaim();
    ProfilerClaim(const ProfilerClaim&) = delete;
    ProfilerClaim& operator=(const ProfilerClaim&) = delete;
  };

  ProfileOptions options_;
  TraceOrigin origin_;
  std::filesystem::path folder_;
  torch::profiler::impl::ProfilerConfig config_;
  std::set<torch::profiler::impl::ActivityType> activities_;
  ProfilerClaim claim_;
  RecorderState state_ = RecorderState::idle;
  std::int64_t step_ = 0;
  std::int64_t written_ = 0;
  bool is_over_ = false;
  std::optional<at::RecordFunction> range_;  ///< of the step
};

}  // namespace hortator::observe
