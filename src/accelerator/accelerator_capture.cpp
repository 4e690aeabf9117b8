#include <c10/core/GradMode.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <hortator/training/capture.hpp>

#include "accelerator/channels/channels.hpp"
#include "accelerator/prepared/prepared.hpp"
#include "accelerator/training/recordable.hpp"
#include "accelerator/training/reproducing.hpp"
#include "accelerator/training/step_control.hpp"
#include "accelerator/training/training.hpp"
#include "core/call_site.hpp"
#include "core/log.hpp"
#include "core/text/text.hpp"
#include "interception/dispatch_keys.hpp"
#include "machine/device/graph.hpp"
#include "machine/device/recording.hpp"
#include "observe/operators/step_recording.hpp"
#include "step/capture/recorded_gradients.hpp"
#include "step/capture/recorded_modules.hpp"
#include "step/capture/step_recording.hpp"
#include "step/gradients/protection.hpp"
#include "step/moments/optimizer_fields.hpp"
#include "step/precision/grad_scaler.hpp"

namespace hortator {
namespace {

bool has_pages(const accelerator::Training& training) {
  return std::ranges::any_of(training.prepared.models(), [](const auto& model) {
    return std::ranges::any_of(model->module().parameters(), interception::carries_key);
  });
}

accelerator::RecordingFacts facts_of(const accelerator::Training& training) {
  return {.kind = machine::kind_of(training.device()),
          .ranks = training.host().size(),
          .waits_for_verdicts = training.control.scaler() != nullptr && !training.control.scaler()->is_late(),
          .is_protected = training.control.protection() != nullptr,
          .is_sharded = training.channels.zero() != nullptr,
          .is_reproducible = training.control.reproducing() != nullptr,
          .records_operators = training.recording != nullptr,
          .accumulation_steps = training.control.accumulation().steps(),
          .has_fused_optimizers = training.options().fused_optimizer};
}

/// What LibTorch says beside its message is for debugging: advice about CUDA's errors, and the calls that led to one.
std::string reason_of(const std::exception& problem) {
  const auto* const from_torch = dynamic_cast<const c10::Error*>(&problem);
  if (from_torch == nullptr) return problem.what();
  auto reason = text::first_line(from_torch->msg());
  for (const auto& place : from_torch->context()) reason += text::concat(" (", place, ")");
  return reason;
}

std::vector<step::ModelHooks::HookCounts> hooks_of(const accelerator::Training& training) {
  std::vector<step::ModelHooks::HookCounts> all;
  for (const auto& model : training.prepared.models()) all.push_back(model->hooks().counts());
  return all;
}

bool is_like(const at::Tensor& a, const at::Tensor& b) {
  return a.defined() == b.defined() &&
         (!a.defined() || (a.sizes() == b.sizes() && a.scalar_type() == b.scalar_type() && a.device() == b.device()));
}

std::vector<at::Tensor> stepped_parameters(const accelerator::Training& training) {
  std::vector<at::Tensor> all;
  for (const auto& optimizer : training.prepared.optimizers()) {
    for (const auto& parameter : optimizer->parameters()) all.push_back(parameter);
  }
  return all;
}

/// For memory of the graph's stream that the program uses on the current one, and may release there.
void keep_for_current_stream(const at::Tensor& tensor) {
  if (!tensor.defined() || tensor.device().is_cpu() || !tensor.has_storage()) return;
  const c10::impl::VirtualGuardImpl device(tensor.device().type());
  device.recordDataPtrOnStream(tensor.storage().data_ptr(), device.getStream(tensor.device()));
}

void keep_moments_for_current_stream(const step::OptimizerCore& optimizer) {
  for (const auto& [parameter, state] : optimizer.optimizer().state()) {
    step::replace_tensors(*state, [](const at::Tensor& moment) {
      keep_for_current_stream(moment);
      return moment;
    });
  }
}

/// The gradients of all prepared optimizers and their scales. They are restored when a recording has failed.
class KeptGradients {
 public:
  explicit KeptGradients(const accelerator::Training& training) : gradients_(stepped_parameters(training)) {
    for (const auto& optimizer : training.prepared.optimizers()) {
      auto* scaled = optimizer->scaled();
      if (scaled != nullptr) scaled_.emplace_back(scaled, scaled->state());
    }
  }
  void put_back() const {
    gradients_.put_back();
    for (const auto& [scaled, standing] : scaled_) scaled->restore(standing);
  }

  void complete(step::StepRecording& recording) const { gradients_.complete(recording); }

 private:
  step::RecordedGradients gradients_;
  std::vector<std::pair<step::ScaledGradients*, step::ScaledGradients::ScaleState>> scaled_;
};

}  // namespace

class CapturedStep::State {
 public:
  State(accelerator::Training& training, Step step, const CaptureOptions& options)
      : training_(training), session_(training.control.session()), step_(std::move(step)), options_(options) {}

  at::Tensor run(const std::vector<at::Tensor>& inputs) {
    session_->check_alive("captured step");
    if (why_not_.empty()) give_up_if_not_recordable();
    if (!why_not_.empty()) return run_as_written(inputs);
    if (recorded_ && !recorded_->host.is_good()) start_over();
    if (recorded_) return fits(inputs) ? replay(inputs) : run_unrecorded(inputs);
    if (steps_++ < options_.warm_up) return run_unrecorded(inputs);
    return record(inputs);
  }

  bool is_recorded() const { return recorded_ != nullptr; }
  const std::string& why_not() const { return why_not_; }

 private:
  /// The host's part of a recording, and the tensors that the device reads and writes: their memory must not move.
  struct Recorded {
    step::StepRecording host;
    std::vector<at::Tensor> inputs = {};
    at::Tensor result = {};
  };

  static at::Tensor detached(const at::Tensor& result) { return result.defined() ? result.detach() : result; }

  // Pages are looked for only until the step is recorded: parameters that move later end the recording.
  void give_up_if_not_recordable() {
    auto facts = facts_of(training_);
    facts.is_paged = !recorded_ && has_pages(training_);
    if (auto reason = why_not_recordable(facts); !reason.empty()) give_up(std::move(reason));
  }

  void give_up(std::string reason) {
    why_not_ = std::move(reason);
    forget();
    if (training_.host().rank() == 0) log::info("the captured step runs as written: ", why_not_);
  }

  void forget() {
    recorded_.reset();
    graph_.reset();
  }

  // All steps run on the graph's stream, since backward keeps the stream on which gradients were first made.
  at::Tensor run_unrecorded(const std::vector<at::Tensor>& inputs) {
    if (!graph_) graph_ = std::make_unique<machine::Graph>(training_.device());
    has_rehearsed_ = true;
    at::Tensor result;
    graph_->rehearse([&] { result = step_(inputs); });
    keep_for_current_stream(result);
    for (const auto& parameter : stepped_parameters(training_)) keep_for_current_stream(parameter.grad());
    for (const auto& optimizer : training_.prepared.optimizers()) keep_moments_for_current_stream(*optimizer);
    return detached(result);
  }

  // Gradients and moments that earlier steps have made on a graph's stream are used there further on.
  at::Tensor run_as_written(const std::vector<at::Tensor>& inputs) {
    return has_rehearsed_ ? run_unrecorded(inputs) : detached(step_(inputs));
  }

  // Something that the recording relies on has changed: moments were loaded, weights were moved, hooks were added or
  // removed, or an optimizer's option that is not a tensor on the device was set. If that repeats, recording is of no
  // use.
  void start_over() {
    constexpr int max_recordings = 5;
    forget();
    steps_ = 0;
    if (++recordings_ == max_recordings)
      give_up(
          "the recording was invalidated again and again (an optimizer's options beside its learning rate, or hooks?)");
  }

  at::Tensor record(const std::vector<at::Tensor>& inputs) {
    auto made = std::make_unique<Recorded>(Recorded{.host = step::StepRecording(training_.device())});
    for (const auto& input : inputs) made->inputs.push_back(input.defined() ? input.detach().clone() : input);
    const KeptGradients gradients(training_);
    step::RecordedModules modules;
    for (const auto& model : training_.prepared.models()) modules.add(model->module());
    made->host.require([modules = std::move(modules)] { return modules.are_unchanged(); });
    try {
      const RecordingScope scope(*training_.control.session(), made->host);
      graph_->record([&] { made->result = detached(step_(made->inputs)); });
    } catch (const std::exception& problem) {
      gradients.put_back();
      give_up(text::concat("it cannot be recorded: ", reason_of(problem)));
      return run_as_written(inputs);
    }
    const auto is_scaled = [](const auto& one) {
      return one->scaled() && one->scaled()->state().factor_on_device.defined();
    };
    if (std::any_of(training_.prepared.optimizers().begin(), training_.prepared.optimizers().end(), is_scaled)) {
      gradients.put_back();
      give_up("optimizer.step() is not part of it, and the scale of fp16 gradients is known only within a step");
      return run_as_written(inputs);
    }
    gradients.complete(made->host);
    made->host.require([this, hooks = hooks_of(training_)] { return hooks_of(training_) == hooks; });
    recorded_ = std::move(made);
    return replay(inputs);
  }

  bool fits(const std::vector<at::Tensor>& inputs) const {
    return std::equal(inputs.begin(), inputs.end(), recorded_->inputs.begin(), recorded_->inputs.end(), is_like);
  }

  // Returns a copy, which the caller may keep: the next step overwrites the recorded result.
  at::Tensor replay(const std::vector<at::Tensor>& inputs) {
    const at::NoGradGuard no_grad;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i].defined()) recorded_->inputs[i].copy_(inputs[i], /*non_blocking=*/true);
    }
    recorded_->host.begin_replay();
    graph_->replay();
    recorded_->host.end_replay();
    auto result = recorded_->result.defined() ? recorded_->result.clone() : at::Tensor();
    graph_->protect_memory();
    return result;
  }

  class RecordingScope {
   public:
    RecordingScope(step::AcceleratorSession& session, step::StepRecording& recording) : session_(session) {
      session_.record_into(&recording);
    }
    ~RecordingScope() { session_.record_into(nullptr); }
    RecordingScope(const RecordingScope&) = delete;
    RecordingScope& operator=(const RecordingScope&) = delete;

   private:
    step::AcceleratorSession& session_;
    machine::RecordingMark mark_;
  };

  accelerator::Training& training_;
  std::shared_ptr<const step::AcceleratorSession> session_;
  Step step_;
  CaptureOptions options_;
  std::string why_not_;
  int steps_ = 0;  ///< since recording was last begun
  int recordings_ = 0;
  bool has_rehearsed_ = false;             ///< on the stream of a graph
  std::unique_ptr<machine::Graph> graph_;  ///< null until the first step on the device
  std::unique_ptr<Recorded> recorded_;
};

CapturedStep::CapturedStep(std::unique_ptr<State> state) : state_(std::move(state)) {}
CapturedStep::~CapturedStep() = default;
CapturedStep::CapturedStep(CapturedStep&& other) noexcept = default;
CapturedStep& CapturedStep::operator=(CapturedStep&& other) noexcept = default;

bool CapturedStep::is_recorded() const { return state_->is_recorded(); }
const std::string& CapturedStep::why_not() const { return state_->why_not(); }

at::Tensor CapturedStep::run(const std::vector<at::Tensor>& inputs) {
  const CallSite site(__builtin_return_address(0));
  return state_->run(inputs);
}

CapturedStep Accelerator::make_captured(CapturedStep::Step step, const CaptureOptions& options) {
  if (options.warm_up < 1) {
    throw UsageError({.what = text::concat("capture got warm_up = ", options.warm_up),
                      .why = "the set-up by LibTorch and optimizers in their first step must not be recorded",
                      .hint = "use at least 1"});
  }
  return CapturedStep(std::make_unique<CapturedStep::State>(*training_, std::move(step), options));
}

void detail::throw_other_inputs(std::size_t expected, std::size_t got) {
  throw UsageError({.what = text::concat("A captured step of ", text::count(static_cast<long long>(expected), "tensor"),
                                         " was called with ", got),
                    .hint = "call it with the arguments that its function takes"});
}

}  // namespace hortator
