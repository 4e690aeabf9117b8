#include <torch/optim/adamw.h>

#include <cstdlib>
#include <hortator/error.hpp>
#include <hortator/training/random.hpp>
#include <utility>

#include "bench/bare_step.hpp"
#include "bench/measurements.hpp"
#include "bench/workloads.hpp"

namespace hortator::bench {
namespace {

/// How parameters are gathered at stage 3 over several nodes.
struct GatherMode {
  bool ahead = false;
  bool cast = false;
  bool int8 = false;
};

/// The variables hold while an Accelerator is made.
void set_variables(const GatherMode& mode) {
  setenv("HORTATOR_GATHER_AHEAD", mode.ahead ? "1" : "0", 1);
  setenv("HORTATOR_GATHER_CAST", mode.cast ? "1" : "0", 1);
}

/// The options of an Accelerator that gathers in this way.
AcceleratorOptions options_of(const GatherMode& mode, Precision precision) {
  set_variables(mode);
  return {.mixed_precision = precision, .zero = {.stage = 3, .int8_gathers = mode.int8}};
}

class GatheredStep {
 public:
  GatheredStep(const GatherMode& mode, Precision precision, const Workload& workload, OneBatch batch)
      : accelerator_(options_of(mode, precision)),
        workload_(workload),
        batch_(std::move(batch)),
        net_(workload.make_net()),
        adamw_(net_->parameters(), 1e-3),
        model_(accelerator_.prepare(net_)),
        optimizer_(accelerator_.prepare(adamw_)) {
    constexpr int warm_steps = 3;
    for (int i = 0; i < warm_steps; ++i) step();
  }
  void step() {
    accelerator_.backward(workload_.loss(model_(batch_.input), batch_.target));
    optimizer_.step();
    optimizer_.zero_grad();
  }

 private:
  Accelerator accelerator_;
  const Workload& workload_;
  OneBatch batch_;
  std::shared_ptr<Net> net_;
  torch::optim::AdamW adamw_;
  Model<std::shared_ptr<Net>> model_;
  Optimizer optimizer_;
};

Result compare(Accelerator& ranks, const Workload& workload, const Plan& plan, Precision precision,
               const GatherMode& mode) {
  set_seed(1, {.device_specific = true});
  const auto batch = make_batch(ranks, workload);
  GatheredStep in_turn({}, precision, workload, batch);
  GatheredStep ours(mode, precision, workload, batch);
  return {.name = "gathers",
          .params = {{"workload", workload.name},
                     {"ranks", ranks.num_processes()},
                     {"nodes", ranks.num_nodes()},
                     {"precision", std::string(to_string(precision))},
                     {"ahead", mode.ahead},
                     {"cast", mode.cast},
                     {"int8", mode.int8}},
          .reference = "gathered when they are used, in fp32",
          .timing = time_in_pairs(
              {.ours = [&] { ours.step(); }, .reference = [&] { in_turn.step(); }, .line_up = [&] { line_up(ranks); }},
              plan)};
}

}  // namespace

std::vector<Result> gathers(Accelerator& accelerator, const Plan& plan, const Selection& selection) {
  if (accelerator.num_nodes() == 1) {
    throw UsageError({.what = "hortator bench gathers runs on one node",
                      .why = "the ranks of a node share their parameters, and gather none",
                      .hint = "use several nodes, such as --nodes 2"});
  }
  const auto names = selection.cases.empty() ? std::vector<std::string>{"mlp-comm", "mlp-mixed"} : selection.cases;
  std::vector<Result> results;
  for (const auto* workload : workloads_named(names)) {
    for (const auto& mode : {GatherMode{.ahead = true}, GatherMode{.int8 = true}})
      results.push_back(compare(accelerator, *workload, plan, Precision::no, mode));
    for (const auto& mode : {GatherMode{.ahead = true}, GatherMode{.cast = true},
                             GatherMode{.ahead = true, .cast = true}, GatherMode{.ahead = true, .int8 = true}})
      results.push_back(compare(accelerator, *workload, plan, Precision::bf16, mode));
  }
  unsetenv("HORTATOR_GATHER_AHEAD");
  unsetenv("HORTATOR_GATHER_CAST");
  return results;
}

}  // namespace hortator::bench
