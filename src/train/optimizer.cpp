#include <hortator/error.hpp>
#include <hortator/optimizer.hpp>

#include "base/call_site.hpp"
#include "shard/system_memory.hpp"
#include "train/optimizer_core.hpp"
#include "train/step_recording.hpp"

namespace hortator {
namespace train {
namespace {

// As torch::optim does it, of parameters that the optimizer does not have.
void zero_gradients_of(const std::vector<at::Tensor>& parameters, bool set_to_none) {
  for (const auto& parameter : parameters) {
    auto& gradient = parameter.mutable_grad();
    if (!gradient.defined()) continue;
    set_to_none ? gradient.reset() : void(gradient.detach_().zero_());
  }
}

}  // namespace

void OptimizerCore::step() {
  check_alive();
  if (!surroundings_.gradients_synchronised()) return;
  surroundings_.synchronise();
  if (auto* recording = session_->recording()) return record_step(*recording);
  skipped_ = scaled_ && !scaled_->may_step();
  if (skipped_) return;
  const bool is_first = optimizer_->state().empty();
  if (shards_) shards_->before_step();
  train::step(*optimizer_, surroundings_.kernel);
  if (shards_) shards_->after_step();
  // What was freed on the way here goes back; later steps use theirs again.
  if (shards_ && is_first) shard::return_free_memory();
}

void OptimizerCore::record_step(StepRecording& recording) {
  skipped_ = false;
  if (surroundings_.kernel == StepKernel::fused && fused_step(*optimizer_, &recording)) return;
  throw UsageError({.what = "this optimizer's step cannot be recorded (accelerator.capture)",
                    .why = "only ATen's fused kernels of AdamW, Adam and SGD read learning rates on the device",
                    .hint = "use one of these without amsgrad, and leave AcceleratorOptions::fused_optimizer on"});
}

void OptimizerCore::zero_grad(bool set_to_none) {
  check_alive();
  if (!surroundings_.gradients_synchronised()) return;
  optimizer_->zero_grad(set_to_none);
  if (shards_) zero_gradients_of(shards_->parameters(), set_to_none);
  surroundings_.cleared(parameters());
}

}  // namespace train

void Optimizer::step() {
  const CallSite site(__builtin_return_address(0));
  core_->step();
}

bool Optimizer::step_was_skipped() const { return core_->step_was_skipped(); }

void Optimizer::zero_grad(bool set_to_none) { core_->zero_grad(set_to_none); }

torch::optim::Optimizer& Optimizer::unwrap() const { return core_->optimizer(); }

}  // namespace hortator
