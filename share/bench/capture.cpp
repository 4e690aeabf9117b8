#include <hortator/error.hpp>
#include <hortator/training/random.hpp>

#include "bench/bare_step.hpp"

namespace hortator::bench {
namespace {

constexpr int steps_until_recorded = 4;

Result time_captured(Accelerator& accelerator, const Plan& plan, const Workload& workload) {
  set_seed(1);
  const auto batch = make_batch(accelerator, workload);
  BareStep bare_step(accelerator, workload, batch);

  auto net = workload.make_net();
  const auto own_optimizer = make_optimizer(workload, *net);
  auto [model, optimizer] = accelerator.prepare(net, *own_optimizer);
  auto step =
      accelerator.capture([&, &model = model, &optimizer = optimizer](const at::Tensor& x, const at::Tensor& y) {
        auto loss = workload.loss(model(x), y);
        accelerator.backward(loss);
        optimizer.step();
        optimizer.zero_grad();
        return loss;
      });
  for (int i = 0; i < steps_until_recorded; ++i) step(batch.input, batch.target);
  if (!step.is_recorded()) {
    throw UsageError({.what = "Bench capture cannot compare a recorded step",
                      .why = step.why_not(),
                      .hint = "run it alone on a CUDA device"});
  }
  const auto captured_step = [&] { step(batch.input, batch.target); };
  auto result = bare_step.compare("capture", captured_step, plan);
  accelerator.free_memory();
  return result;
}

}  // namespace

std::vector<Result> capture(Accelerator& accelerator, const Plan& plan, const Selection& selection) {
  return time_workloads(time_captured, accelerator, plan, selection);
}

}  // namespace hortator::bench
