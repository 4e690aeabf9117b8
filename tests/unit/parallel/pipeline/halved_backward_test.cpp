// Backward in two halves has the gradients of one backward pass, and computes each operator once.
#include "parallel/pipeline/halved_backward.hpp"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "support/called_operators.hpp"
#include "support/catch.hpp"

using hortator::parallel::HalvedBackward;

namespace {

using Tensors = std::vector<at::Tensor>;

/// A stage: tensors from the previous one, weights, and what it computes.
struct Stage {
  Tensors inputs, weights;
  std::function<Tensors(const Tensors& inputs, const Tensors& weights)> run;
};

Tensors leaves(const Tensors& values) {
  Tensors copies;
  for (const auto& value : values) copies.push_back(value.detach().clone().set_requires_grad(value.requires_grad()));
  return copies;
}

Tensors ones_like(const Tensors& results) {
  Tensors ones;
  for (const auto& result : results) ones.push_back(at::ones_like(result) + 0.5 * at::cos(result.detach()));
  return ones;
}

Tensors grads_of(const Tensors& tensors) {
  Tensors grads;
  for (const auto& tensor : tensors) grads.push_back(tensor.grad());
  return grads;
}

struct Found {
  Tensors of_inputs, of_weights;
  std::map<std::string, int> calls = {};  ///< of both halves together
};

std::map<std::string, int> count(const std::function<void()>& work) {
  const hortator::test::CalledOperators called;
  work();
  std::map<std::string, int> calls;
  for (const auto& name : called.names()) ++calls[name];
  return calls;
}

Found in_one_pass(const Stage& stage) {
  const auto inputs = leaves(stage.inputs), weights = leaves(stage.weights);
  const auto results = stage.run(inputs, weights);
  Tensors roots;
  std::ranges::copy_if(results, std::back_inserter(roots), [](const auto& one) { return one.requires_grad(); });
  const auto starts = ones_like(roots);
  const auto calls = count([&] { torch::autograd::backward(roots, starts); });
  return {.of_inputs = grads_of(inputs), .of_weights = grads_of(weights), .calls = calls};
}

Found in_halves(const Stage& stage) {
  const auto inputs = leaves(stage.inputs), weights = leaves(stage.weights);
  auto results = stage.run(inputs, weights);
  const auto starts = ones_like(results);
  Found found;
  found.calls = count([&] {
    HalvedBackward halves(results, starts, inputs);
    results.clear();
    found.of_inputs = halves.input_gradients();
    for (const auto& weight : weights) CHECK(!weight.grad().defined());
    halves.add_other_gradients();
  });
  found.of_weights = grads_of(weights);
  return found;
}

void check_same(const Tensors& found, const Tensors& expected) {
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    INFO("tensor " << i);
    REQUIRE(found[i].defined() == expected[i].defined());
    if (found[i].defined()) CHECK(at::allclose(found[i], expected[i], 1e-6, 1e-7));
  }
}

/// Products, which are what a backward pass costs.
int products(const std::map<std::string, int>& calls) {
  int sum = 0;
  for (const auto* name : {"aten::mm", "aten::bmm", "aten::addmm", "aten::baddbmm", "aten::convolution_backward"}) {
    const auto found = calls.find(name);
    sum += found == calls.end() ? 0 : found->second;
  }
  return sum;
}

at::Tensor weight(std::initializer_list<std::int64_t> sizes) {
  return (at::randn(sizes) * 0.3).set_requires_grad(true);
}

}  // namespace

TEST_CASE("halves of layers with norms, tied weights and several results are those of one pass") {
  at::manual_seed(1);
  const Stage stage{.inputs = {weight({3, 6}), weight({3, 6}), at::randn({3, 6}), weight({2})},
                    .weights = {weight({6, 6}), weight({6}), weight({6, 6}), weight({6, 6}), weight({4})},
                    .run = [](const Tensors& in, const Tensors& w) {
                      auto x = at::linear(in[0], w[0], w[1]) + in[1] * in[2];
                      x = at::gelu(at::layer_norm(x, {6}, w[1]));
                      x = x + at::matmul(x, at::matmul(w[2], w[3]));  // a weight that is computed
                      const auto parts = at::linear(x, w[0]).split(2, 1);
                      return Tensors{x, parts[0] * parts[1], w[4].square(), in[2]};
                    }};
  const auto expected = in_one_pass(stage), found = in_halves(stage);
  check_same(found.of_inputs, expected.of_inputs);
  check_same(found.of_weights, expected.of_weights);
  CHECK(products(expected.calls) > 5);
  CHECK(products(found.calls) == products(expected.calls));
}

TEST_CASE("halves of random chains are those of one pass") {
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    at::manual_seed(round);
    std::vector<int> kinds(1 + random() % 12);
    for (auto& kind : kinds) kind = static_cast<int>(random() % 6);
    const Stage stage{.inputs = {weight({4, 5}), weight({4, 5})},
                      .weights = {weight({5, 5}), weight({5}), weight({5, 5})},
                      .run = [kinds](const Tensors& in, const Tensors& w) {
                        Tensors all = {in[0], in[1]};
                        for (std::size_t i = 0; i < kinds.size(); ++i) {
                          const auto &a = all.back(), &b = all[i % all.size()];
                          const auto x = kinds[i] == 0   ? at::linear(a, w[0], w[1])
                                         : kinds[i] == 1 ? a + b
                                         : kinds[i] == 2 ? at::tanh(a) * w[1]
                                         : kinds[i] == 3 ? at::matmul(a, at::matmul(w[0], w[2]))
                                         : kinds[i] == 4 ? at::matmul(b, a.t().matmul(b)) * 0.1
                                                         : w[2].square().sum(0, true).expand({4, 5}) + 0;
                          all.push_back(x);
                        }
                        return Tensors{all.back(), all[all.size() / 2]};
                      }};
    INFO("round " << round);
    const auto expected = in_one_pass(stage), found = in_halves(stage);
    check_same(found.of_inputs, expected.of_inputs);
    check_same(found.of_weights, expected.of_weights);
    CHECK(products(found.calls) <= products(expected.calls));
  }
}

TEST_CASE("a stage without inputs has its gradients in the second half") {
  at::manual_seed(2);
  const Stage stage{
      .inputs = {at::randn({3, 5})}, .weights = {weight({5, 5})}, .run = [](const Tensors& in, const Tensors& w) {
        return Tensors{at::linear(at::tanh(at::linear(in[0], w[0])), w[0])};
      }};
  const auto expected = in_one_pass(stage), found = in_halves(stage);
  check_same(found.of_inputs, expected.of_inputs);
  check_same(found.of_weights, expected.of_weights);
}

TEST_CASE("hooks on gradients run once, and change them") {
  at::manual_seed(3);
  for (const bool on_activation : {true, false}) {
    int runs = 0;
    const auto inputs = Tensors{weight({3, 5})}, weights = Tensors{weight({5, 5}), weight({5, 5})};
    const auto hidden = at::linear(inputs[0], weights[0]);
    (on_activation ? hidden : weights[1]).register_hook([&](const at::Tensor& gradient) {
      return ++runs, gradient * 2;
    });
    const auto result = at::linear(at::tanh(hidden), weights[1]);
    HalvedBackward halves({result}, {at::ones_like(result)}, inputs);
    const auto of_input = halves.input_gradients().front().clone();
    halves.add_other_gradients();
    CHECK(runs == 1);
    const auto back = at::ones_like(result).matmul(weights[1]) * (1 - at::tanh(hidden).square());
    CHECK(at::allclose(of_input, back.matmul(weights[0]) * (on_activation ? 2 : 1), 1e-4, 1e-5));
    CHECK(at::allclose(weights[0].grad(), back.t().matmul(inputs[0]) * (on_activation ? 2 : 1), 1e-4, 1e-5));
  }
}

TEST_CASE("the first half frees what only gradients of inputs need") {
  const auto input = weight({64, 64});
  const auto w = weight({64, 64});
  auto hidden = at::tanh(at::linear(input, w));
  const auto kept = hidden.storage().getWeakStorageImpl();
  auto result = hidden * 2;
  hidden = at::Tensor();
  CHECK_FALSE(kept.expired());
  HalvedBackward halves({result}, {at::ones_like(result)}, {input});
  result = at::Tensor();
  CHECK(kept.expired());
  halves.add_other_gradients();
  CHECK(w.grad().defined());
}
