#include "observe/profile/recorder.hpp"

#include <torch/csrc/autograd/profiler_kineto.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <hortator/error.hpp>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/text/text.hpp"

// LibTorch declares it in a header that needs headers of Kineto, which its packages do not have.
namespace torch::autograd::profiler {
TORCH_API void addMetadataJson(const std::string& key, const std::string& value);
}  // namespace torch::autograd::profiler

namespace hortator::observe {
namespace {

namespace profiler = torch::autograd::profiler;
using torch::profiler::impl::ActivityType;
using torch::profiler::impl::ProfilerConfig;
using torch::profiler::impl::ProfilerState;

std::atomic<bool> is_claimed = false;

// Kineto logs a line for each start and end, and errors about missing devices. Only called without a device: with one,
// the errors explain why kernels are missing in a trace.
void quieten_kineto() { setenv("KINETO_LOG_LEVEL", "99", /*overwrite=*/0); }

// "distributedInfo" is what PyTorch writes and readers of its traces expect; "hortator" is for `hortator trace`.
// Readers look for `"rank": 3`, with the blank.
void add_origin(const TraceOrigin& origin) {
  const nlohmann::ordered_json place = {{"backend", "hortator"}, {"rank", origin.rank}, {"world_size", origin.world}};
  const nlohmann::ordered_json own = {
      {"rank", origin.rank}, {"world", origin.world}, {"host", origin.host}, {"barriers", origin.barriers}};
  constexpr auto replace = nlohmann::ordered_json::error_handler_t::replace;
  profiler::addMetadataJson("distributedInfo", place.dump(1, ' ', false, replace));
  profiler::addMetadataJson("hortator", own.dump(-1, ' ', false, replace));
}

bool is_recorded(ProfileAction action) {
  return action == ProfileAction::record || action == ProfileAction::record_last;
}

}  // namespace

std::set<ActivityType> activities_of(const ProfileOptions& options, const machine::DeviceKind* kind) {
  const bool are_all = options.activities.empty();
  std::set<ActivityType> activities;
  if (are_all) activities.insert(ActivityType::CPU);
  if (are_all && kind != nullptr) activities.insert(kind->activity);
  for (const auto activity : options.activities) {
    if (activity != ProfilerActivity::cpu && kind == nullptr) {
      throw UsageError({.what = "profile: CUDA activities were requested",
                        .why = "this Accelerator uses the CPU",
                        .hint = "leave ProfileOptions::activities empty to record everything that is available"});
    }
    activities.insert(activity == ProfilerActivity::cpu ? ActivityType::CPU : kind->activity);
  }
  return activities;
}

Recorder::ProfilerClaim::ProfilerClaim() {
  if (!torch::profiler::impl::profilerEnabled() && !is_claimed.exchange(true)) return;
  throw UsageError({.what = "profile: another profile is running",
                    .why = "LibTorch has one profiler per process",
                    .hint = "end the scope of the first one before"});
}

Recorder::ProfilerClaim::~ProfilerClaim() { is_claimed = false; }

Recorder::Recorder(ProfileOptions options, TraceOrigin origin, std::filesystem::path folder,
                   const machine::DeviceKind* kind)
    : options_((check(options), std::move(options))),
      origin_(std::move(origin)),
      folder_(std::move(folder)),
      config_(ProfilerState::KINETO, options_.record_shapes, options_.profile_memory),
      activities_(activities_of(options_, kind)) {
  if (kind == nullptr) quieten_kineto();
  begin_step();
}

// A recording that finish() did not save is dropped.
Recorder::~Recorder() {
  range_.reset();
  try {
    if (state_ == RecorderState::recording) profiler::disableProfiler();
  } catch (...) {
  }
}

void Recorder::step() {
  if (is_over_) return;
  end_step();
  ++step_;
  begin_step();
}

void Recorder::finish() {
  if (std::exchange(is_over_, true)) return;
  range_.reset();
  if (state_ == RecorderState::recording) stop_and_save();
}

void Recorder::begin_step() {
  const auto action = profile_action(options_.schedule_option, step_);
  if (action != ProfileAction::none && state_ == RecorderState::idle) prepare();
  if (!is_recorded(action)) return;
  if (state_ == RecorderState::prepared) start();
  if (!options_.schedule_option) return;  // a single recording, possibly without steps
  range_.emplace(at::RecordScope::USER_SCOPE);
  if (range_->isActive()) range_->before(text::concat("ProfilerStep#", step_));
}

void Recorder::end_step() {
  range_.reset();
  if (profile_action(options_.schedule_option, step_) == ProfileAction::record_last) stop_and_save();
}

void Recorder::prepare() {
  profiler::prepareProfiler(config_, activities_);
  state_ = RecorderState::prepared;
}

void Recorder::start() {
  profiler::enableProfiler(config_, activities_);
  add_origin(origin_);
  state_ = RecorderState::recording;
}

void Recorder::stop_and_save() {
  state_ = RecorderState::idle;
  const auto result = profiler::disableProfiler();
  const auto file = next_file();
  std::filesystem::create_directories(folder_);
  result->save(file.string());
  if (!std::filesystem::exists(file)) {
    throw Error(
        {.what = "Cannot write the trace " + file.string(), .hint = "choose another ProfileOptions::output_trace_dir"});
  }
  ++written_;
  if (options_.on_trace_ready) options_.on_trace_ready(file);
}

std::filesystem::path Recorder::next_file() const {
  const auto cycle = written_ == 0 ? std::string() : text::concat(".", written_);
  return folder_ / text::concat("profile_", origin_.rank, cycle, ".json");
}

}  // namespace hortator::observe
