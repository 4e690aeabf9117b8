#include <ATen/Parallel.h>
#include <ATen/ops/scalar_tensor.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <torch/optim/adamw.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <hortator/training/random.hpp>
#include <optional>
#include <utility>

#include "bench/bare_step.hpp"
#include "bench/measurements.hpp"
#include "bench/workloads.hpp"
#include "machine/device/device.hpp"
#include "machine/memory/freed_memory.hpp"

namespace hortator::bench {
namespace {

constexpr int warm_steps = 3;
constexpr int max_blocks = 10;
constexpr double block_seconds = 0.3;  // a block of a large model is a single step

/// Memory of this process in MiB, with shared memory divided among its processes, without files. Zero if unknown.
double proportional_mib() {
  std::ifstream file("/proc/self/smaps_rollup");
  double kib = 0;
  for (std::string word; file >> word;) {
    double more = 0;
    if ((word == "Pss_Anon:" || word == "Pss_Shmem:") && file >> more) kib += more;
  }
  return std::round(kib / 102.4) / 10;
}

/// Device memory in use by all processes in MiB, relative to an arbitrary zero: NCCL's memory is unknown to LibTorch.
double taken_mib(c10::Device device) {
  c10::getDeviceAllocator(device.type())->emptyCache();
  return -static_cast<double>(machine::free_memory(device)) / (1 << 20);
}

// Releases memory that this loop and earlier ones have freed.
double settled_mib(c10::Device device) {
  if (!device.is_cpu()) return taken_mib(device);
  machine::return_freed_memory();
  return proportional_mib();
}

/// A loop over one batch, and the device memory that it keeps between steps: parameters, moments, communication
/// buffers. If ranks share a device, the sum over these ranks.
class Side {
 public:
  explicit Side(c10::Device device) : device_(device) {}
  virtual ~Side() = default;
  virtual void step() = 0;
  double mib() const { return mib_; }

 protected:
  void warm_up(Accelerator& ranks) {
    for (int i = 0; i < warm_steps; ++i) step();
    line_up(ranks);
    mib_ = settled_mib(device_) - before_;
    ranks.wait_for_everyone();
  }

 private:
  c10::Device device_;
  double before_ = settled_mib(device_);
  double mib_ = 0;
};

/// Plain LibTorch in the same precision: each rank trains separately.
class Bare final : public Side {
 public:
  Bare(Accelerator& ranks, const Workload& workload, OneBatch batch)
      : Side(ranks.device()), ranks_(ranks), workload_(workload), batch_(std::move(batch)), net_(workload.make_net()) {
    net_->to(ranks.device());
    adamw_ = std::make_unique<torch::optim::AdamW>(net_->parameters(), 1e-3);
    warm_up(ranks);
  }
  void step() override { step_bare(ranks_, workload_, batch_, *net_, *adamw_); }

 private:
  const Accelerator& ranks_;
  const Workload& workload_;
  OneBatch batch_;
  std::shared_ptr<Net> net_;
  std::unique_ptr<torch::optim::AdamW> adamw_;
};

class Prepared final : public Side {
 public:
  Prepared(const ZeroConfig& zero, const Workload& workload, OneBatch batch)
      : Side(batch.input.device()),
        accelerator_({.zero = zero}),
        workload_(workload),
        batch_(std::move(batch)),
        net_(workload.make_net()) {
    adamw_ = std::make_unique<torch::optim::AdamW>(net_->parameters(), 1e-3);
    model_.emplace(accelerator_.prepare(net_));
    optimizer_.emplace(accelerator_.prepare(*adamw_));
    warm_up(accelerator_);
  }
  void step() override {
    accelerator_.backward(workload_.loss((*model_)(batch_.input), batch_.target));
    optimizer_->step();
    optimizer_->zero_grad();
  }

 private:
  Accelerator accelerator_;
  const Workload& workload_;
  OneBatch batch_;
  std::shared_ptr<Net> net_;
  std::unique_ptr<torch::optim::AdamW> adamw_;
  std::optional<Model<std::shared_ptr<Net>>> model_;
  std::optional<Optimizer> optimizer_;
};

/// The number of steps that fill a block, the same on all ranks. @collective
int steps_in_a_block(Accelerator& ranks, Side& side, const Plan& plan) {
  ranks.wait_for_everyone();
  const auto begin = seconds_now();
  side.step();
  const auto slowest = ranks.gather(at::scalar_tensor(seconds_now() - begin, at::kDouble)).max().item<double>();
  return std::clamp(static_cast<int>(block_seconds / slowest), 1, plan.steps);
}

Result compare_sides(Accelerator& ranks, const Workload& workload, const Plan& plan, nlohmann::json params, Side& ours,
                     Side& reference, const std::string& reference_name) {
  const Plan own = {.blocks = std::min(plan.blocks, max_blocks), .steps = steps_in_a_block(ranks, reference, plan)};
  params["workload"] = workload.name;
  params["ranks"] = ranks.num_processes();
  params["threads"] = at::get_num_threads();
  params["device"] = ranks.device().str();
  params["precision"] = std::string(to_string(ranks.mixed_precision()));
  params["kept_mib"] = ours.mib();
  params["reference_kept_mib"] = reference.mib();
  params["steps"] = own.steps;
  return {
      .name = "zero",
      .params = std::move(params),
      .reference = reference_name,
      .timing = time_in_pairs(
          {.ours = [&] { ours.step(); }, .reference = [&] { reference.step(); }, .line_up = [&] { line_up(ranks); }},
          own)};
}

std::vector<Result> stages_of(Accelerator& ranks, const Workload& workload, const Plan& plan) {
  set_seed(1, {.device_specific = true});
  const auto batch = make_batch(ranks, workload);
  std::vector<Result> results;
  // Memory that the first steps of a process take for kernels and workspaces belongs to neither side.
  if (!ranks.device().is_cpu()) Bare(ranks, workload, batch);
  Prepared whole({.stage = 0}, workload, batch);
  {
    Bare bare(ranks, workload, batch);
    results.push_back(compare_sides(ranks, workload, plan, {{"stage", 0}}, whole, bare, "LibTorch alone on each rank"));
  }
  for (const int stage : {1, 2, 3}) {
    Prepared sharded({.stage = stage}, workload, batch);
    results.push_back(
        compare_sides(ranks, workload, plan, {{"stage", stage}}, sharded, whole, "the same loop at stage 0"));
  }
  for (const auto& place : {std::filesystem::path("cpu"), std::filesystem::current_path()}) {
    const bool in_host = place == "cpu";
    if (in_host && ranks.device().is_cpu()) continue;  // they are in host memory anyway
    Prepared offloaded({.stage = 3, .offload_optimizer = place, .offload_parameters = place}, workload, batch);
    results.push_back(compare_sides(ranks, workload, plan, {{"stage", 3}, {"offload", in_host ? "cpu" : "disk"}},
                                    offloaded, whole, "the same loop at stage 0"));
  }
  return results;
}

}  // namespace

std::vector<Result> zero(Accelerator& accelerator, const Plan& plan, const Selection& selection) {
  const auto names =
      selection.cases.empty() ? std::vector<std::string>{"mlp-comm", "mlp-mixed", "bert-mini"} : selection.cases;
  std::vector<Result> results;
  for (const auto* workload : workloads_named(names)) {
    for (auto& result : stages_of(accelerator, *workload, plan)) results.push_back(std::move(result));
  }
  return results;
}

}  // namespace hortator::bench
