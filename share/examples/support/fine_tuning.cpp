#include "fine_tuning.hpp"

#include <ATen/ATen.h>

#include <hortator/error.hpp>
#include <hortator/models/pretrained.hpp>
#include <string>

namespace example {

FineTuningOptions FineTuningOptions::parse(Options& options) {
  FineTuningOptions found;
  found.zero = options.number("zero", 0, "stage of ZeRO: 1 shards moments, 2 gradients, 3 parameters", 0);
  found.axes = Axes::parse_tensor(options);
  found.checkpoint_every = options.number("checkpoint-every", 100, "steps between checkpoints");
  found.stop_after = options.number("stop-after", 0, "save and stop after N steps; 0: train to the end", 0);
  found.cpu = options.flag("cpu", "stay on the CPU");
  found.run_dir = options.run_dir();
  if (found.zero > 3)
    throw hortator::UsageError({.what = "--zero: expected 0 to 3, got " + std::to_string(found.zero)});
  return found;
}

void FineTuning::begin_log() {
  first_step_ = steps_.done;
  accelerator_.on_main_process([&] { log_.emplace(options_.run_dir / "loss.csv", steps_.done); });
}

bool FineTuning::finish_step(const at::Tensor& loss, double learning_rate) {
  const auto mean = accelerator_.reduce(loss.detach(), hortator::Reduce::mean).item<double>();
  ++steps_.done;
  accelerator_.log({{"loss", mean}, {"lr", learning_rate}});
  if (log_) log_->add(steps_.done, {mean});
  const bool is_last = steps_.done - first_step_ == options_.stop_after;
  if (is_last || steps_.done % options_.checkpoint_every == 0) accelerator_.save_state();
  if (is_last)
    accelerator_.print("stopped behind step ", steps_.done, " as requested; the same command resumes from there");
  return is_last || accelerator_.should_stop();  // the job's time is nearly over: saved, to resume later
}

void FineTuning::save_config(const hortator::models::PretrainedModel& net) {
  accelerator_.on_main_process([&] { hortator::models::save_config(net, options_.run_dir / "model"); });
}

}  // namespace example
