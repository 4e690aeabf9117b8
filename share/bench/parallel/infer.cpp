#include <ATen/Parallel.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/tanh.h>
#include <c10/core/InferenceMode.h>

#include "accelerator/training/training.hpp"
#include "bench/bare_step.hpp"
#include "simulation/together/joint_inference.hpp"

namespace hortator::bench {
namespace {

using simulation::JointInference;

constexpr std::int64_t rank_samples = 100;  // of a rank
constexpr std::int64_t input_features = 64;

/// A network of layers with tanh between them.
class InferredNet {
 public:
  explicit InferredNet(const std::vector<std::int64_t>& sizes) {
    for (std::size_t i = 0; i + 1 < sizes.size(); ++i) weights_.push_back(at::rand({sizes[i + 1], sizes[i]}) - 0.5);
  }
  JointInference::Tensors operator()(const JointInference::Tensors& inputs) const {
    auto x = inputs.front();
    for (const auto& weight : weights_) x = at::tanh(at::linear(x, weight));
    return {x};
  }

 private:
  std::vector<at::Tensor> weights_ = {};
};

struct InferCase {
  std::string name;
  std::vector<std::int64_t> sizes;
};

const std::vector<InferCase>& infer_cases() {
  static const std::vector<InferCase> all = {{"tiny", {input_features, 8}},
                                             {"closure", {input_features, 256, 256, 256, 8}}};
  return all;
}

/// Lets the other ranks sleep while the first one computes the baseline: ranks that wait in MPI would take its core.
class SleepingRanks {
 public:
  SleepingRanks(const mpi::Communicator& node, int steps)
      : is_first_(node.rank() == 0), steps_(steps), memory_(node, node, sizeof(simulation::SharedCounter), "bench") {}

  void step(const std::function<void()>& work) {
    if (is_first_) work();
    if (++calls_ % steps_ != 0) return;
    auto& blocks = *reinterpret_cast<simulation::SharedCounter*>(memory_.part(0));
    if (is_first_) return blocks.advance();
    const auto block = static_cast<std::uint32_t>(calls_ / steps_);
    while (blocks.value() < block)
      blocks.wait_while(block - 1, std::chrono::steady_clock::now() + std::chrono::seconds(1), 0);
  }

 private:
  bool is_first_;
  std::int64_t steps_;
  mpi::SharedMemory memory_;
  std::int64_t calls_ = 0;
};

Result time_infer(Accelerator& accelerator, const Plan& plan, const InferCase& one) {
  const c10::InferenceMode inference;
  const auto& comm = accelerator::Training::of(accelerator).host();
  const auto node = comm.node();
  const InferredNet net(one.sizes);
  const JointInference::Tensors mine = {at::rand({rank_samples, input_features})};
  const JointInference::Tensors all = {at::rand({rank_samples * node.size(), input_features})};
  at::Tensor result = at::empty({rank_samples, one.sizes.back()});
  at::Tensor whole = at::empty({rank_samples * node.size(), one.sizes.back()});
  JointInference joint(comm, at::kCPU, one.name, {.patience = std::chrono::seconds(60)});
  SleepingRanks reference(node, plan.steps);
  const Sides sides = {.ours = [&] { result.copy_(joint.infer(mine, net).front()); },
                       .reference = [&] { reference.step([&] { whole.copy_(net(all).front()); }); },
                       .line_up = [&] { line_up(accelerator); }};
  const auto timing = time_in_pairs(sides, plan);
  return {.name = "infer",
          .params = {{"case", one.name},
                     {"ranks", node.size()},
                     {"samples", rank_samples},
                     {"threads", at::get_num_threads()},
                     {"steps", plan.steps},
                     {"added_us", (timing.ours.median_s - timing.reference.median_s) * 1e6}},
          .reference = "one call with the samples of all ranks",
          .timing = timing,
          .samples_per_s = static_cast<double>(rank_samples * node.size()) / timing.ours.median_s};
}

}  // namespace

std::vector<Result> infer(Accelerator& accelerator, const Plan& plan, const Selection& selection) {
  std::vector<std::string> known;
  for (const auto& one : infer_cases()) known.push_back(one.name);
  check_known("--case", selection.cases, known);
  std::vector<Result> results;
  for (const auto& one : infer_cases())
    if (selection.wants(one.name)) results.push_back(time_infer(accelerator, plan, one));
  return results;
}

}  // namespace hortator::bench
