// The training of `hortator new` in LibTorch alone: what user-compile-time.py compares it with.
#include <torch/data/dataloader.h>
#include <torch/data/datasets/base.h>
#include <torch/data/datasets/map.h>
#include <torch/data/transforms/stack.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adamw.h>

#include <cstdio>
#include <numbers>
#include <optional>

namespace {

class Spirals : public torch::data::datasets::Dataset<Spirals> {
 public:
  explicit Spirals(std::int64_t count) : target_(torch::arange(count).remainder(2)) {
    const auto turn = torch::linspace(0.5, 1.5, count) * 2 * std::numbers::pi;
    const auto angle = turn + target_ * std::numbers::pi;
    points_ = torch::stack({angle.cos() * turn, angle.sin() * turn}, 1).to(torch::kFloat) / (3 * std::numbers::pi);
  }
  torch::data::Example<> get(std::size_t i) override {
    const auto row = static_cast<std::int64_t>(i);
    return {points_[row], target_[row]};
  }
  std::optional<std::size_t> size() const override { return static_cast<std::size_t>(target_.size(0)); }

 private:
  torch::Tensor points_;
  torch::Tensor target_;
};

}  // namespace

int main() {
  torch::manual_seed(1);
  using namespace torch::nn;
  Sequential net(Linear(2, 64), Tanh(), Linear(64, 64), Tanh(), Linear(64, 2));
  torch::optim::AdamW adamw(net->parameters(), 1e-2);
  const auto loader = torch::data::make_data_loader(Spirals(4000).map(torch::data::transforms::Stack<>()), 32);
  std::int64_t right = 0;
  for (int epoch = 0; epoch < 25; ++epoch) {
    right = 0;
    for (auto& batch : *loader) {
      const auto guess = net->forward(batch.data);
      const auto loss = torch::cross_entropy_loss(guess, batch.target);
      loss.backward();
      adamw.step();
      adamw.zero_grad();
      right += guess.argmax(1).eq(batch.target).sum().item<std::int64_t>();
    }
  }
  std::printf("%.1f %% right in the last epoch\n", static_cast<double>(right) / 40);
}
