#include "bench/workloads.hpp"

#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>

#include <algorithm>

#include "bench/measurements.hpp"

namespace hortator::bench {
namespace {

class Mlp final : public Net {
 public:
  /// Linear layers of these widths with ReLU between them; with `last_relu` also at the end.
  Mlp(const std::vector<std::int64_t>& widths, bool last_relu) {
    for (std::size_t i = 0; i + 1 < widths.size(); ++i) {
      layers_->push_back(torch::nn::Linear(widths[i], widths[i + 1]));
      if (last_relu || i + 2 < widths.size()) layers_->push_back(torch::nn::ReLU());
    }
  }
  at::Tensor forward(const at::Tensor& input) override { return layers_->forward(input); }

 private:
  torch::nn::Sequential layers_ = register_module("layers", torch::nn::Sequential());
};

at::Tensor mean_square(const at::Tensor& output, const at::Tensor& target) { return at::mse_loss(output, target); }
at::Tensor cross_entropy(const at::Tensor& output, const at::Tensor& target) {
  return at::cross_entropy_loss(output, target);
}

Workload square_mlp(const std::string& name, int depth, std::int64_t width, std::int64_t batch) {
  const auto values = [=] { return at::randn({batch, width}); };
  return {name,
          [=] {
            return std::make_shared<Mlp>(std::vector<std::int64_t>(static_cast<std::size_t>(depth) + 1, width), true);
          },
          values, values, mean_square};
}

Workload classes(const std::string& name, std::function<std::shared_ptr<Net>()> net, std::function<at::Tensor()> input,
                 std::int64_t batch, std::int64_t count) {
  return {name, std::move(net), std::move(input), [=] { return at::randint(count, {batch}, at::kLong); },
          cross_entropy};
}

}  // namespace

const std::vector<Workload>& workloads() {
  static const std::vector<Workload> all = {
      // So small that the overhead around the arithmetic shows.
      classes(
          "mlp-small",
          [] {
            return std::make_shared<Mlp>(std::vector<std::int64_t>{64, 128, 128, 10}, false);
          },
          [] {
            return at::randn({32, 64});
          },
          32, 10),
      square_mlp("mlp-comm", 8, 1024, 8),
      square_mlp("mlp-mixed", 4, 2048, 64),
      square_mlp("mlp-big", 8, 4096, 8),
      classes(
          "bert-mini", make_bert_mini,
          [] {
            return at::randint(30522, {8, 128}, at::kLong);
          },
          8, 2),
      classes(
          "resnet18-32", make_resnet18,
          [] {
            return at::randn({16, 3, 32, 32});
          },
          16, 10),
      // For GPUs: a CPU takes minutes per step.
      classes(
          "gpt-124m", make_gpt,
          [] {
            return at::randint(50257, {8, 1024}, at::kLong);
          },
          std::int64_t{8} * 1024, 50257),
  };
  return all;
}

std::vector<const Workload*> workloads_named(const std::vector<std::string>& names) {
  std::vector<std::string> known;
  for (const auto& workload : workloads()) known.push_back(workload.name);
  check_known("--case", names, known);
  std::vector<const Workload*> found;
  for (const auto& name : names)
    found.push_back(
        &workloads()[static_cast<std::size_t>(std::find(known.begin(), known.end(), name) - known.begin())]);
  return found;
}

}  // namespace hortator::bench
