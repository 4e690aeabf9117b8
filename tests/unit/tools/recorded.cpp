// recorded FOLDER COUNT: records the first step of a small net in FOLDER/reference, and with a fault in each of the
// first COUNT operators of floating-point numbers in FOLDER/fault-N; prints the operator of each. recorded.py records
// the same net of PyTorch.
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>
#include <torch/optim/adamw.h>

#include <cstdlib>
#include <hortator/hortator.hpp>
#include <iostream>

#include "support/files.hpp"
#include "tools/compare/aligned_calls.hpp"
#include "unit/tools/planted_fault.hpp"

using namespace hortator;

namespace {

constexpr std::int64_t width = 16;
constexpr std::int64_t classes = 8;

// As Python's Linear; that of C++ consists of other operators.
at::Tensor linear_of(const torch::nn::Linear& layer, const at::Tensor& x) {
  return at::linear(x, layer->weight, layer->bias);
}

struct BlockImpl : torch::nn::Module {
  BlockImpl() {
    norm = register_module("norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({width})));
    query = register_module("query", torch::nn::Linear(width, width));
    key = register_module("key", torch::nn::Linear(width, width));
    up = register_module("up", torch::nn::Linear(width, 2 * width));
    down = register_module("down", torch::nn::Linear(2 * width, width));
  }
  at::Tensor forward(const at::Tensor& x) {
    const auto y = norm(x);
    const auto scores = at::softmax(at::matmul(linear_of(query, y), linear_of(key, y).transpose(-1, -2)) / 4, -1);
    return x + linear_of(down, at::gelu(linear_of(up, at::matmul(scores, y))));
  }
  torch::nn::LayerNorm norm{nullptr};
  torch::nn::Linear query{nullptr}, key{nullptr}, up{nullptr}, down{nullptr};
};
TORCH_MODULE(Block);

struct NetImpl : torch::nn::Module {
  NetImpl() {
    embed = register_module("embed", torch::nn::Embedding(classes, width));
    first = register_module("first", Block());
    second = register_module("second", Block());
    head = register_module("head", torch::nn::Linear(width, classes));
  }
  at::Tensor forward(const at::Tensor& ids) { return linear_of(head, second(first(embed(ids)))); }
  torch::nn::Embedding embed{nullptr};
  Block first{nullptr}, second{nullptr};
  torch::nn::Linear head{nullptr};
};
TORCH_MODULE(Net);

// Exact in single precision, so that Python fills in the same.
void fill(const at::Tensor& tensor, std::int64_t seed) {
  const at::NoGradGuard no_grad;
  const auto numbers = (at::arange(tensor.numel(), at::kLong) * 37 + seed) % 61 - 30;
  tensor.copy_((numbers.to(at::kFloat) / 64).view(tensor.sizes()));
}

observe::StepRecord record(const std::filesystem::path& folder, std::optional<std::int64_t> fault) {
  const test::PlantedFault planted(fault);
  Accelerator accelerator({.log_with = {}, .record = {.operators = folder}});
  Net net;
  std::int64_t seed = 0;
  for (const auto& parameter : net->parameters()) fill(parameter, ++seed);
  const auto ids = (at::arange(24, at::kLong) * 5 % classes).view({4, 6});
  torch::optim::AdamW adamw(net->parameters(), 1e-3);
  auto [model, optimizer] = accelerator.prepare(net, adamw);
  test::PlantedFault::begin_counting();
  accelerator.backward(at::cross_entropy_loss(model(ids).view({-1, classes}), ids.view(-1).flip(0)));
  optimizer.step();
  const auto file = folder / observe::record_file(0);
  return observe::parse_step_record(test::content_of(file), file);
}

bool is_candidate(const observe::OperatorRecord& record) {
  const bool is_noted = record.name.find("::") == std::string::npos;
  return !is_noted && record.near != "update" && record.results.front().type == "Float";
}

void record_all(const std::filesystem::path& folder, int count) {
  const auto reference = record(folder / "reference", std::nullopt);
  const auto alignment = tools::align({reference}, {reference});
  std::int64_t number = -1;
  int faults = 0;
  for (std::size_t i = 0; i < reference.operators.size() && faults < count; ++i) {
    number += reference.operators[i].name.find("::") == std::string::npos ? 0 : 1;
    if (!is_candidate(reference.operators[i])) continue;
    record(folder / ("fault-" + std::to_string(faults++)), number);
    std::cout << std::ranges::find(alignment.both, i, &tools::AlignedCall::position)->text() << "\n";
  }
}

}  // namespace

int main(int argc, char** argv) {
  return hortator::run(argc, argv, [&] { record_all(argv[1], std::atoi(argv[2])); });
}
