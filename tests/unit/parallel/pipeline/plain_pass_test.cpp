// The stages of a plain module's forward, one after the other on one rank: a survey, and a pass for each stage.
#include "parallel/pipeline/plain/plain_pass.hpp"

#include <ATen/ATen.h>
#include <torch/nn/modules/linear.h>

#include <hortator/error.hpp>

#include "parallel/pipeline/plain/staged_values.hpp"
#include "parallel/pipeline/plain/tensor_stages.hpp"
#include "support/catch.hpp"

using namespace hortator;
using namespace hortator::parallel;
using Catch::Matchers::ContainsSubstring;

namespace {

struct Net : torch::nn::Module {
  at::Tensor forward(const at::Tensor& x) {
    const auto first = at::tanh(a(x));
    const auto mask = x.gt(0).any(1);
    return b(first) * mask.unsqueeze(1) + first.sum();
  }
  torch::nn::Linear a = register_module("a", torch::nn::Linear(3, 4));
  torch::nn::Linear b = register_module("b", torch::nn::Linear(4, 2));
};

}  // namespace

TEST_CASE("the stages of a plain forward together are the whole forward and backward") {
  Net net;
  const auto x = at::arange(15, at::kFloat).view({5, 3}) / 15 - 0.2;
  const TensorStages tensors(net, map_stages(net, {.ranks = 2}));
  Route route;
  {
    PlainSurvey survey(tensors, 2);
    CHECK(divides_plain_forward());
    CHECK(net.forward(x).sizes() == at::IntArrayRef({5, 2}));
    route = std::move(survey).finish();
  }
  CHECK(!divides_plain_forward());
  REQUIRE(route.stages() == 2);
  CHECK(route.messages[1].size() == 1);  // the mask comes from the batch, which all ranks have

  StageTensors sent;
  try {
    const PlainPass pass(&route, 0, {.send = [&](const StageTensors& results) { sent = results; }});
    net.forward(x);
    FAIL("the first stage came to the end of forward");
  } catch (const StageEnd&) {
  }
  REQUIRE(sent.size() == 1);
  const auto received = sent[0].detach().clone().requires_grad_();
  at::Tensor result;
  {
    const PlainPass pass(&route, 1, {.receive = [&] { return StageTensors{received}; }});
    result = net.forward(x);
  }
  result.sum().backward();
  sent[0].backward(received.grad());
  const auto of_a = net.a->weight.grad().clone(), of_b = net.b->weight.grad().clone();
  net.zero_grad();
  const auto whole = net.forward(x);
  CHECK(at::equal(result, whole));
  whole.sum().backward();
  CHECK(at::allclose(of_a, net.a->weight.grad()));
  CHECK(at::allclose(of_b, net.b->weight.grad()));
}

TEST_CASE("results of other stages have shapes, and no memory") {
  Net net;
  const TensorStages tensors(net, map_stages(net, {.ranks = 2}));
  PlainSurvey survey(tensors, 2);
  const auto hidden = net.a(at::ones({5, 3}));
  CHECK(hidden.sizes() == at::IntArrayRef({5, 4}));
  CHECK_THROWS(hidden.data_ptr<float>());
  CHECK_THROWS_WITH(hidden.sum().item<float>(), ContainsSubstring("was called on a result of another stage"));
  CHECK_THROWS_WITH(std::move(survey).finish(), ContainsSubstring("no parameter of stage 1"));
}
