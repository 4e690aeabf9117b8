#include <ATen/Parallel.h>
#include <torch/optim/adamw.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <hortator/error.hpp>
#include <hortator/random.hpp>
#include <sstream>

#include "base/text.hpp"
#include "cli/bench/measurements.hpp"
#include "cli/bench/workloads.hpp"

namespace hortator::cli::bench {
namespace {

constexpr int warm_steps = 2;

/// MiB of this process, what it has in common with others divided among them. Zero where the system does not say.
double proportional_mib() {
  std::ifstream file("/proc/self/smaps_rollup");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("Pss:")) continue;
    double kib = 0;
    std::istringstream(line.substr(4)) >> kib;
    return std::round(kib / 102.4) / 10;
  }
  return 0;
}

/// A prepared loop over one batch.
class Side {
 public:
  Side(Accelerator& accelerator, const Workload& workload, const at::Tensor& input, const at::Tensor& target)
      : accelerator_(accelerator), workload_(workload), input_(input), target_(target), net_(workload.make_net()) {
    const auto before = proportional_mib();
    adamw_ = std::make_unique<torch::optim::AdamW>(net_->parameters(), 1e-3);
    model_.emplace(accelerator_.prepare(net_));
    optimizer_.emplace(accelerator_.prepare(*adamw_));
    for (int i = 0; i < warm_steps; ++i) step();
    accelerator_.wait_for_everyone();
    mib_ = proportional_mib() - before;
    accelerator_.wait_for_everyone();
  }

  void step() {
    accelerator_.backward(workload_.loss((*model_)(input_), target_));
    optimizer_->step();
    optimizer_->zero_grad();
  }
  /// What the steps keep, beside the parameters as they were made.
  double mib() const { return mib_; }

 private:
  Accelerator& accelerator_;
  const Workload& workload_;
  at::Tensor input_;
  at::Tensor target_;
  std::shared_ptr<Net> net_;
  std::unique_ptr<torch::optim::AdamW> adamw_;
  std::optional<Model<std::shared_ptr<Net>>> model_;
  std::optional<Optimizer> optimizer_;
  double mib_ = 0;
};

Result compare(Accelerator& plain, const Workload& workload, int stage, const Plan& plan) {
  set_seed(1, {.device_specific = true});
  const auto input = workload.make_input().to(plain.device());
  const auto target = workload.make_target().to(plain.device());
  Side reference(plain, workload, input, target);
  Accelerator accelerator({.zero = {.stage = stage}});
  Side ours(accelerator, workload, input, target);
  Result result{.name = "zero",
                .params = {{"workload", workload.name},
                           {"stage", stage},
                           {"ranks", plain.num_processes()},
                           {"threads", at::get_num_threads()},
                           {"device", plain.device().str()},
                           {"kept_mib", ours.mib()},
                           {"reference_kept_mib", reference.mib()},
                           {"steps", plan.steps}},
                .reference = "the same loop at stage 0",
                .timing = time_in_pairs({.ours = [&] { ours.step(); },
                                         .reference = [&] { reference.step(); },
                                         .line_up = [&] { plain.wait_for_everyone(); }},
                                        plan)};
  accelerator.free_memory();
  plain.free_memory();
  return result;
}

}  // namespace

std::vector<Result> zero(Accelerator& accelerator, const Plan& plan, const Selection& selection) {
  const auto wanted =
      selection.cases.empty() ? std::vector<std::string>{"mlp-comm", "mlp-mixed", "bert-mini"} : selection.cases;
  std::vector<std::string> names;
  for (const auto& workload : workloads()) names.push_back(workload.name);
  std::vector<Result> results;
  for (const auto& name : wanted) {
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end())
      throw UsageError(
          {.what = text::concat("--case ", name, " is no workload"), .hint = text::suggestion(name, names)});
    for (const int stage : {1, 2, 3})
      results.push_back(
          compare(accelerator, workloads()[static_cast<std::size_t>(found - names.begin())], stage, plan));
  }
  return results;
}

}  // namespace hortator::cli::bench
