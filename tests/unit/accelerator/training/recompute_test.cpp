// Gradient checkpointing while gradients are averaged.
#include "support/catch.hpp"
#include "unit/accelerator/fixtures.hpp"

using namespace hortator;

namespace {

struct DeepImpl : torch::nn::Module {
  explicit DeepImpl(bool recomputes) : recomputes_(recomputes) {
    for (int i = 0; i < 4; ++i) blocks.push_back(register_module(std::to_string(i), test::Net(0.2)));
    widen = register_module("widen", torch::nn::Linear(1, 3));
  }
  at::Tensor forward(at::Tensor h) {
    for (auto& block : blocks) {
      const auto step = [&](const at::Tensor& x) { return at::tanh(widen(block(x))) + x; };
      h = recomputes_ ? recompute(step, h) : step(h);
    }
    return h.square().mean();
  }
  std::vector<test::Net> blocks;
  torch::nn::Linear widen{nullptr};  // shared by all blocks

 private:
  bool recomputes_;
};
TORCH_MODULE(Deep);

struct Result {
  Deep net;
  std::vector<at::Tensor> gradients;
};

// Four updates of two micro-batches each, with dropout.
Result trained(Accelerator& accelerator, bool recomputes) {
  set_seed(11, {.device_specific = true});
  Deep net(recomputes);
  torch::optim::SGD sgd(net->parameters(), 0.1);
  auto [model, optimizer] = accelerator.prepare(net, sgd);
  std::vector<at::Tensor> gradients;
  for (int micro = 0; micro < 8; ++micro) {
    const auto loss = model(at::full({2, 3}, 0.1 * (micro + accelerator.process_index())));
    if (micro % 2 == 0) {
      auto local = accelerator.no_sync(model);
      accelerator.backward(loss);
      continue;
    }
    micro % 4 == 1 ? accelerator.backward(loss) : loss.backward();
    for (const auto& parameter : net->parameters()) gradients.push_back(parameter.grad().clone());
    optimizer.step();
    optimizer.zero_grad();
  }
  return {net, gradients};
}

}  // namespace

TEST_CASE("recomputed blocks train to the same bits, with buckets, shared layers, dropout and accumulation") {
  for (const double megabytes : {1e-9, 25.0}) {
    Accelerator accelerator({.ddp = {.bucket_cap_mb = megabytes}});
    const auto plain = trained(accelerator, false);
    const auto recomputed = trained(accelerator, true);
    CHECK(test::same_parameters(*plain.net, *recomputed.net));
    REQUIRE(plain.gradients.size() == recomputed.gradients.size());
    for (std::size_t i = 0; i < plain.gradients.size(); ++i) {
      CHECK(at::equal(plain.gradients[i], recomputed.gradients[i]));
    }
  }
}

TEST_CASE("a rank that recomputes and ranks that do not still average the same gradients") {
  Accelerator accelerator({.ddp = {.bucket_cap_mb = 1e-9}});
  const auto plain = trained(accelerator, false);
  const auto mixed = trained(accelerator, accelerator.is_main_process());
  CHECK(test::same_parameters(*plain.net, *mixed.net));
}
