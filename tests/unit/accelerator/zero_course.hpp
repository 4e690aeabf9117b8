#pragma once

#include <ATen/ops/full_like.h>
#include <ATen/ops/mse_loss.h>

#include <vector>

#include "zero_fixture.hpp"

namespace hortator::test {

/// A way to train test::Shardable.
struct Course {
  int steps = 6;
  int accumulation = 1;
  double max_norm = 0;
  double norm_type = 2;
  bool detours = false;  ///< in every other pass the detour is left out
  bool set_to_none = true;
  bool plain_backward = false;
  bool by_counts = false;
  MakeOptimizer make_optimizer = make_adamw;
  at::ScalarType type = at::kFloat;
};

/// What a course comes to.
struct Outcome {
  std::vector<at::Tensor> parameters = {};
  std::vector<double> losses = {};
  std::vector<double> norms = {};
};

/// Small buckets: several arrays, cut within parameters.
inline AcceleratorOptions options_of(const ZeroConfig& zero, const Course& course) {
  return {.gradient_accumulation_steps = course.accumulation,
          .ddp = {.bucket_cap_mb = 3e-3, .find_unused_parameters = course.detours},
          .zero = zero};
}

inline Outcome learn(AcceleratorOptions options, const Course& course) {
  Accelerator accelerator(options);
  Shardable net(course.type);
  auto own = course.make_optimizer(net);
  auto [model, optimizer] = accelerator.prepare(net, *own);
  Outcome outcome;
  for (int step = 0; step < course.steps * course.accumulation; ++step) {
    auto micro_step = accelerator.accumulate(model);
    const auto y = model(batch(accelerator, step, course.type), !course.detours || step % 2 == 0);
    const auto loss = at::mse_loss(y, at::full_like(y, 0.3));
    outcome.losses.push_back(loss.item<double>());
    if (course.plain_backward) {
      loss.backward();
    } else if (course.by_counts) {
      accelerator.backward(loss * (step + 1.0), step + 1.0);
    } else {
      accelerator.backward(loss);
    }
    if (course.max_norm > 0 && accelerator.sync_gradients()) {
      const auto norm = accelerator.clip_grad_norm_(model.parameters(), course.max_norm, course.norm_type);
      outcome.norms.push_back(norm.item<double>());
    }
    optimizer.step();
    optimizer.zero_grad(course.set_to_none);
  }
  outcome.parameters = copies_of(*net);
  accelerator.wait_for_everyone();
  return outcome;
}

inline Outcome learn(const ZeroConfig& zero, const Course& course) { return learn(options_of(zero, course), course); }

}  // namespace hortator::test
