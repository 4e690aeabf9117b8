// Exported models that are divided among tensor ranks, by the paths that their modules have in Python.
#include <torch/optim/sgd.h>

#include <algorithm>
#include <cmath>
#include <hortator/models/exported.hpp>

#include "../accelerator/first_ranks.hpp"
#include "../accelerator/fixtures.hpp"
#include "../exported/stored_models.hpp"
#include "support/catch.hpp"

using namespace hortator;

namespace {

TensorPlan derived_plan(const std::string& name) {
  const auto net = exported_module(stored_models::file(name));
  const auto input = stored_models::tensors(name).get("input_0");
  return derive_tensor_plan(*net, 2, [&] { return net->forward(input)[0].square().mean(); });
}

std::vector<double> losses_of(const std::string& name, AcceleratorOptions options) {
  Accelerator accelerator(std::move(options));
  const auto tensors = stored_models::tensors(name);
  auto net = exported_module(stored_models::file(name));
  torch::optim::SGD sgd(net->parameters(), 0.05);
  auto [model, optimizer] = accelerator.prepare(net, sgd);
  std::vector<double> losses;
  for (int i = 0; i < 50; ++i) {
    const auto loss = at::mse_loss(model(tensors.get("input_0"))[0], tensors.get("target"));
    accelerator.backward(loss);
    losses.push_back(loss.item<double>());
    optimizer.step();
    optimizer.zero_grad();
  }
  return losses;
}

/// 50 steps by a plan, in which no operator gathers parts if it is strict, and on one rank.
void check_losses(const std::string& name, const TensorPlan& plan, bool strict = true) {
  INFO(describe(plan));
  const auto divided = losses_of(name, {.parallel = {.tensor = 2, .plan = plan, .strict = strict}});
  const test::FirstRanks first(1);
  if (!first.is_in()) return;
  const auto expected = losses_of(name, {.communicator = first.handle()});
  CHECK(std::ranges::equal(divided, expected, [](double a, double b) { return std::abs(a - b) < 1e-5; }));
  CHECK(divided.back() < 0.9 * divided.front());
}

}  // namespace

TEST_CASE("plans of exported models are derived, with blocks of queries, keys and values") {
  CHECK(describe(derived_plan("mlp")) == "layers.0: columns\nlayers.2: rows");
  CHECK(describe(derived_plan("attention")) == "qkv: columns in 3 blocks\nout: rows");
  CHECK_THROWS_WITH(derived_plan("tied"), ContainsSubstring("No layers were found that 2 tensor ranks can divide"));
}

TEST_CASE("exported models have the losses of one rank when they are divided by derived plans and by plans by hand") {
  for (const auto* name : {"mlp", "attention"}) check_losses(name, derived_plan(name));
  check_losses("mlp", {TensorRule::from_hugging_face("layers.0", "colwise"),
                       TensorRule::from_hugging_face("layers.2", "rowwise")});
  check_losses("attention", {{.pattern = "q*", .division = TensorDivision::columns, .blocks = 3, .unit = 4},
                             {.pattern = "out", .division = TensorDivision::rows}});
  check_losses("tied", {{.pattern = "embedding", .division = TensorDivision::vocabulary}}, /*strict=*/false);
}

TEST_CASE("a plan with names that an exported model does not have is refused by these names") {
  Accelerator accelerator({.parallel = {.tensor = 2,
                                        .plan = {{"layers.*.self_attn.q_proj", TensorDivision::columns},
                                                 {"layers.0", TensorDivision::columns},
                                                 {"lm_head", TensorDivision::vocabulary}}}});
  auto net = exported_module(stored_models::file("mlp"));
  CHECK_THROWS_WITH(accelerator.prepare(net),
                    ContainsSubstring("The patterns 'layers.*.self_attn.q_proj', 'lm_head' of the tensor-parallel plan "
                                      "fit no parameter of the model") &&
                        ContainsSubstring("the model has the layers layers.*"));
}
