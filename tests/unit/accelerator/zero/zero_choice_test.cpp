// Each rank uses some of the layers, at stage 3 over two nodes.
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/optim/adamw.h>

#include "unit/accelerator/zero/two_nodes.hpp"

using namespace hortator;
using test::are_close;
using test::are_equal;
using test::back_ends;
using test::batch;
using test::copies_of;
using test::use_communicator;

namespace {

/// Each rank uses one of these layers, of its own choice.
struct ChosenImpl : torch::nn::Module {
  ChosenImpl() {
    at::manual_seed(9);
    first = register_module("first", torch::nn::Linear(7, 24));
    experts = register_module("experts", torch::nn::ModuleList());
    for (int i = 0; i < 4; ++i) experts->push_back(torch::nn::Linear(24, 24));
    last = register_module("last", torch::nn::Linear(24, 5));
  }
  at::Tensor forward(const at::Tensor& x, int expert) {
    auto hidden = at::tanh(first(x));
    for (const int one : {expert, expert + 2})
      hidden = at::tanh(experts->at<torch::nn::LinearImpl>(static_cast<std::size_t>(one)).forward(hidden));
    return last(hidden);
  }
  torch::nn::Linear first{nullptr};
  torch::nn::ModuleList experts{nullptr};
  torch::nn::Linear last{nullptr};
};
TORCH_MODULE(Chosen);

std::vector<at::Tensor> train_chosen(const ZeroConfig& zero) {
  Accelerator accelerator({.ddp = {.bucket_cap_mb = 1e-3, .find_unused_parameters = true}, .zero = zero});
  Chosen net;
  torch::optim::AdamW adamw(test::distinct(*net), torch::optim::AdamWOptions(1e-2).weight_decay(0.1));
  auto [model, optimizer] = accelerator.prepare(net, adamw);
  for (int step = 0; step < 5; ++step) {
    const int expert = (accelerator.process_index() + step / 2) % 2;
    accelerator.backward(model(batch(accelerator, step), expert).square().mean());
    optimizer.step();
    optimizer.zero_grad();
  }
  auto parameters = copies_of(*net);
  accelerator.wait_for_everyone();
  return parameters;
}

std::vector<at::Tensor> train_experts(int stage) {
  Accelerator accelerator({.ddp = {.bucket_cap_mb = 1e-3}, .zero = {.stage = stage}});
  at::manual_seed(9);
  torch::nn::Sequential net(torch::nn::Linear(7, 16), nn::MoE(nn::MoEOptions{.width = 16, .inner = 24, .experts = 4}),
                            torch::nn::Linear(16, 5));
  torch::optim::AdamW adamw(test::distinct(*net), torch::optim::AdamWOptions(1e-2).weight_decay(0.1));
  auto [model, optimizer] = accelerator.prepare(net, adamw);
  for (int step = 0; step < 5; ++step) {
    accelerator.backward(model(batch(accelerator, step)).square().mean());
    optimizer.step();
    optimizer.zero_grad();
  }
  auto parameters = copies_of(*net);
  accelerator.wait_for_everyone();
  return parameters;
}

}  // namespace

TEST_CASE("over nodes, mixtures of experts train at stage 3 as at stage 2, whichever experts each rank uses") {
  for (const auto* communicator : back_ends) {
    use_communicator(communicator);
    INFO(communicator);
    CHECK(are_equal(train_experts(3), train_experts(2)));
  }
}

TEST_CASE("over nodes, each rank may use layers of its own choice that stay in memory") {
  for (const auto* communicator : back_ends) {
    use_communicator(communicator);
    INFO(communicator);
    const auto replicated = train_chosen({.stage = 0});
    CHECK(are_close(train_chosen({.stage = 2}), replicated, 1e-5));
    CHECK(are_close(train_chosen({.stage = 3, .keep_resident = {"experts"}}), replicated, 1e-5));
  }
}
