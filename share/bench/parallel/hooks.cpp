// What averaging gradients costs a step, by the way in which they travel.
#include <hortator/parallel/local_sgd.hpp>
#include <hortator/parallel/outer_optimizer.hpp>
#include <hortator/training/random.hpp>
#include <optional>

#include "bench/bare_step.hpp"
#include "bench/measurements.hpp"
#include "bench/workloads.hpp"

namespace hortator::bench {
namespace {

struct Hook {
  const char* name;
  DistributedDataParallelOptions options;
};

std::vector<Hook> all_hooks() {
  using enum DDPCommunicationHookType;
  return {{"no", {}},
          {"bf16", {.comm_hook = bf16}},
          {"power_sgd rank 1", {.comm_hook = power_sgd, .power_sgd = {.rank = 1, .start_step = 2}}},
          {"power_sgd rank 4", {.comm_hook = power_sgd, .power_sgd = {.rank = 4, .start_step = 2}}}};
}

Result time_hook(Accelerator& all, const Plan& plan, const Workload& workload, const Hook& hook) {
  set_seed(1, {.device_specific = true});
  Accelerator accelerator({.ddp = hook.options});
  const auto batch = make_batch(accelerator, workload);
  auto net = workload.make_net();
  const auto own_optimizer = make_optimizer(workload, *net);
  auto [model, optimizer] = accelerator.prepare(net, *own_optimizer);
  const auto step = [&, &model = model, &optimizer = optimizer] {
    accelerator.backward(workload.loss(model(batch.input), batch.target));
    optimizer.step();
    optimizer.zero_grad();
  };
  constexpr int whole_steps = 3;  // before gradients travel in factors
  for (int i = 0; i < whole_steps; ++i) step();
  const auto alone = [&, &model = model] {
    const auto local = accelerator.no_sync(model);
    step();
  };
  return {.name = "hooks",
          .params = {{"workload", workload.name},
                     {"hook", hook.name},
                     {"ranks", all.num_processes()},
                     {"nodes", all.num_nodes()}},
          .reference = "the same step without an average",
          .timing = time_in_pairs({.ours = step, .reference = alone, .line_up = [&] { line_up(all); }}, plan)};
}

/// Steps of their own, and an average in each block.
Result time_local_steps(Accelerator& all, const Plan& plan, const Workload& workload, const OuterWire* wire) {
  set_seed(1, {.device_specific = true});
  Accelerator accelerator;
  const auto batch = make_batch(accelerator, workload);
  auto net = workload.make_net();
  const auto own_optimizer = make_optimizer(workload, *net);
  auto [model, optimizer] = accelerator.prepare(net, *own_optimizer);
  std::optional<OuterOptimizer> outer;
  if (wire != nullptr) outer.emplace(accelerator, model, OuterOptimizerOptions{.wire = *wire});
  LocalSGD local_sgd(accelerator, model, {.steps = plan.steps, .outer = outer ? &*outer : nullptr});
  const auto step = [&, &model = model, &optimizer = optimizer] {
    accelerator.backward(workload.loss(model(batch.input), batch.target));
    optimizer.step();
    optimizer.zero_grad();
  };
  const auto ours = [&] {
    step();
    local_sgd.step();
  };
  const auto name = wire == nullptr             ? "LocalSGD"
                    : *wire == OuterWire::whole ? "outer steps, whole"
                    : *wire == OuterWire::int8  ? "outer steps, int8"
                                                : "outer steps, sparse";
  return {.name = "hooks",
          .params = {{"workload", workload.name},
                     {"hook", name},
                     {"ranks", all.num_processes()},
                     {"nodes", all.num_nodes()},
                     {"steps", plan.steps}},
          .reference = "the same step without an average",
          .timing = time_in_pairs({.ours = ours, .reference = step, .line_up = [&] { line_up(all); }}, plan)};
}

}  // namespace

std::vector<Result> hooks(Accelerator& accelerator, const Plan& plan, const Selection& selection) {
  const auto names = selection.cases.empty() ? std::vector<std::string>{"resnet18-32"} : selection.cases;
  std::vector<Result> results;
  for (const auto* workload : workloads_named(names)) {
    for (const auto& hook : all_hooks()) results.push_back(time_hook(accelerator, plan, *workload, hook));
    results.push_back(time_local_steps(accelerator, plan, *workload, nullptr));
    for (const auto wire : {OuterWire::whole, OuterWire::int8, OuterWire::sparse})
      results.push_back(time_local_steps(accelerator, plan, *workload, &wire));
  }
  return results;
}

}  // namespace hortator::bench
