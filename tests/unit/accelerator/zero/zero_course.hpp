#pragma once

#include <ATen/ops/full_like.h>
#include <ATen/ops/mse_loss.h>

#include <vector>

#include "unit/accelerator/zero/zero_fixture.hpp"

namespace hortator::test {

/// How to train test::Shardable.
struct TrainingPlan {
  int steps = 6;
  int accumulation = 1;
  double max_norm = 0;
  double norm_type = 2;
  bool detours = false;  ///< every other pass skips the detour
  bool set_to_none = true;
  bool plain_backward = false;
  bool by_counts = false;
  MakeOptimizer make_optimizer = make_adamw;
  at::ScalarType type = at::kFloat;
};

/// The result of a training.
struct Outcome {
  std::vector<at::Tensor> parameters = {};
  std::vector<double> losses = {};
  std::vector<double> norms = {};
};

/// Small buckets, so that there are several arrays, which are cut within parameters.
inline AcceleratorOptions options_of(const ZeroConfig& zero, const TrainingPlan& plan) {
  return {.gradient_accumulation_steps = plan.accumulation,
          .ddp = {.bucket_cap_mb = 3e-3, .find_unused_parameters = plan.detours},
          .zero = zero};
}

inline Outcome train(AcceleratorOptions options, const TrainingPlan& plan) {
  Accelerator accelerator(options);
  Shardable net(plan.type);
  auto plain_optimizer = plan.make_optimizer(net);
  auto [model, optimizer] = accelerator.prepare(net, *plain_optimizer);
  Outcome outcome;
  for (int step = 0; step < plan.steps * plan.accumulation; ++step) {
    auto micro_step = accelerator.accumulate(model);
    const auto y = model(batch(accelerator, step, plan.type), !plan.detours || step % 2 == 0);
    const auto loss = at::mse_loss(y, at::full_like(y, 0.3));
    outcome.losses.push_back(loss.item<double>());
    if (plan.plain_backward) {
      loss.backward();
    } else if (plan.by_counts) {
      accelerator.backward(loss * (step + 1.0), step + 1.0);
    } else {
      accelerator.backward(loss);
    }
    if (plan.max_norm > 0 && accelerator.sync_gradients()) {
      const auto norm = accelerator.clip_grad_norm_(model.parameters(), plan.max_norm, plan.norm_type);
      outcome.norms.push_back(norm.item<double>());
    }
    optimizer.step();
    optimizer.zero_grad(plan.set_to_none);
  }
  outcome.parameters = copies_of(*net);
  accelerator.wait_for_everyone();
  return outcome;
}

inline Outcome train(const ZeroConfig& zero, const TrainingPlan& plan) { return train(options_of(zero, plan), plan); }

}  // namespace hortator::test
