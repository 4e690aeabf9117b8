// Tensor parallelism: what interception costs an operator, and what a step gains.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/embedding.h>
#include <torch/optim/sgd.h>

#include <algorithm>
#include <hortator/error.hpp>
#include <memory>

#include "bench/bare_step.hpp"
#include "bench/parallel/tensor_operators.hpp"
#include "bench/transformer_layer.hpp"
#include "comm/backends/make_communicator.hpp"
#include "core/text/text.hpp"
#include "parallel/tensor/divided_module.hpp"

namespace hortator::bench {
namespace {

constexpr std::int64_t model_width = 256, head_count = 8, layers = 4, vocabulary = 1024, batch = 8, tokens = 64;

struct Decoder final : TransformerLayer {
  Decoder() : TransformerLayer(model_width, head_count) {}
  at::Tensor forward(const at::Tensor& input) override {
    const auto x = input + attention(norm_1(input), Sight::backwards);
    return x + down(at::gelu(up(norm_2(x)), "tanh"));
  }
};

/// The model that tests/tools/tensor-parallel-speed.py makes of DTensors.
struct SmallGpt final : Net {
  SmallGpt() {
    for (std::int64_t i = 0; i < layers; ++i) blocks->push_back(std::make_shared<Decoder>());
  }
  at::Tensor forward(const at::Tensor& ids) override {
    auto x = texts(ids);
    for (const auto& block : *blocks) x = block->as<Decoder>()->forward(x);
    return scores(norm(x)).flatten(0, 1);
  }

  torch::nn::Embedding texts = register_module("texts", torch::nn::Embedding(vocabulary, model_width));
  torch::nn::ModuleList blocks = register_module("blocks", torch::nn::ModuleList());
  torch::nn::LayerNorm norm = register_module("norm", layer_norm(model_width));
  torch::nn::Linear scores =
      register_module("scores", torch::nn::Linear(torch::nn::LinearOptions(model_width, vocabulary).bias(false)));
};

TensorPlan tensor_plan(bool sequence) {
  TensorPlan plan = {
      {.pattern = "qkv", .division = TensorDivision::columns, .blocks = 3, .unit = model_width / head_count},
      {.pattern = "out", .division = TensorDivision::rows, .unit = model_width / head_count},
      {"up", TensorDivision::columns},
      {"down", TensorDivision::rows},
      {"texts", TensorDivision::vocabulary},
      {"scores", TensorDivision::vocabulary}};
  if (sequence) plan.push_back({"*", TensorDivision::sequence});
  return plan;
}

/// A model, its optimizer, and one batch, which is the same on all ranks.
class Trained {
 public:
  Trained() : net_(make()), optimizer_(net_->parameters(), 1e-3) {}
  SmallGpt& net() { return *net_; }
  void step() {
    at::cross_entropy_loss(net_->forward(ids_), ids_.flatten()).backward();
    const parallel::PartsOnly here;
    optimizer_.step();
    optimizer_.zero_grad();
  }

 private:
  static std::shared_ptr<SmallGpt> make() {
    torch::manual_seed(1);
    return std::make_shared<SmallGpt>();
  }
  std::shared_ptr<SmallGpt> net_;
  torch::optim::SGD optimizer_;
  at::Tensor ids_ = at::arange(batch * tokens, at::kLong).mul(7).remainder(vocabulary).view({batch, tokens});
};

/// A step of a transformer whose layers are divided among all ranks beside one of the whole model on each rank.
/// @collective
Result tensor_step(const Accelerator& accelerator, const Plan& plan, bool sequence) {
  const auto host = mpi::Communicator::world();
  const auto communicator = comm::make_communicator(host, at::kCPU, comm::Checks::off);
  const auto ranks = std::make_shared<parallel::TensorRanks>(*communicator, *communicator);
  Trained divided, whole;
  const parallel::DividedModule parts(divided.net(), tensor_plan(sequence), ranks);
  return {.name = sequence ? "tensor_sequence_step" : "tensor_step",
          .params = {{"ranks", host.size()}, {"width", model_width}, {"layers", layers}, {"tokens", batch * tokens}},
          .reference = "the whole model on each rank",
          .timing = time_in_pairs({.ours = [&] { divided.step(); },
                                   .reference = [&] { whole.step(); },
                                   .line_up = [&] { line_up(accelerator); }},
                                  plan)};
}

bool names(const Selection& selection, const char* one) { return std::ranges::count(selection.cases, one) > 0; }

std::vector<Result> on_one_rank(const Plan& plan, const Selection& selection) {
  for (const auto* one : {"step", "sequence"}) {
    if (!names(selection, one)) continue;
    throw UsageError({.what = text::concat("--case ", one, " was started on one rank"),
                      .why = "a step of a divided model needs several ranks",
                      .hint = text::concat("hortator launch -n 2 hortator bench tensor --case ", one)});
  }
  return tensor_operators(plan);
}

/// @collective
std::vector<Result> on_several_ranks(const Accelerator& accelerator, const Plan& plan, const Selection& selection) {
  if (names(selection, "operators")) {
    throw UsageError({.what = "--case operators was started on several ranks",
                      .why = "it times operators that send nothing",
                      .hint = "hortator bench tensor --case operators"});
  }
  std::vector<Result> results;
  if (selection.wants("step")) results.push_back(tensor_step(accelerator, plan, false));
  if (selection.wants("sequence")) results.push_back(tensor_step(accelerator, plan, true));
  return results;
}

}  // namespace

std::vector<Result> tensor(Accelerator& accelerator, const Plan& plan, const Selection& selection) {
  check_known("--case", selection.cases, {"operators", "step", "sequence"});
  return accelerator.num_processes() == 1 ? on_one_rank(plan, selection)
                                          : on_several_ranks(accelerator, plan, selection);
}

}  // namespace hortator::bench
