#include "exported/run/branch_gradients.hpp"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

#include "support/catch.hpp"

using hortator::exported::Argument;
using hortator::exported::Graph;
using hortator::exported::join_gradients;
using hortator::exported::Reference;
using hortator::exported::unused_inputs;

namespace {

Argument reference_to(const std::string& name) { return {.content = Reference{name}}; }

at::Tensor trained_tensor(double number) { return at::full({3}, number).requires_grad_(); }

}  // namespace

TEST_CASE("inputs that no node and no result of a graph names are unused") {
  const Graph graph{.inputs = {reference_to("a"), reference_to("b"), reference_to("c"), reference_to("d"), {}},
                    .outputs = {reference_to("c"), reference_to("sum")},
                    .nodes = {{.name = "sum",
                               .target = "cat",
                               .inputs = {{.name = "tensors", .value = {.content = Argument::List{reference_to("b")}}}},
                               .outputs = {reference_to("sum")}}}};
  CHECK(unused_inputs(graph) == std::vector<bool>{true, false, false, true, true});
}

TEST_CASE("operands that a branch does not use get gradients of zeros") {
  const auto used = trained_tensor(1), other = trained_tensor(2);
  std::vector<c10::IValue> results = {used.sin(), at::ones({2}, at::kLong), c10::IValue(7)};
  join_gradients(results, {used, other, c10::IValue(1)}, {false, true, true});
  CHECK(results[0].toTensor().equal(used.sin()));
  CHECK_FALSE(results[1].toTensor().requires_grad());
  CHECK(results[2].toInt() == 7);
  results[0].toTensor().sum().backward();
  CHECK(used.grad().equal(used.cos()));
  CHECK(other.grad().equal(at::zeros({3})));
}

TEST_CASE("a result of a branch whose gradient is not needed counts as one of zeros") {
  const auto first = trained_tensor(1), second = trained_tensor(2);
  std::vector<c10::IValue> results = {first * 2, second * 3};
  join_gradients(results, {first, second}, {false, false});
  results[0].toTensor().sum().backward();
  CHECK(first.grad().equal(at::full({3}, 2.0)));
  CHECK(second.grad().equal(at::zeros({3})));
}

TEST_CASE("results of a branch can be operands, changed in place, and differentiated twice") {
  const auto x = trained_tensor(3);
  std::vector<c10::IValue> results = {x, x * x * x};
  join_gradients(results, {x}, {false});
  auto cube = results[1].toTensor();
  cube.add_(1);
  const auto y = cube + results[0].toTensor();
  const auto slope = torch::autograd::grad({y.sum()}, {x}, {}, true, true)[0];
  CHECK(slope.equal(at::full({3}, 28.0)));
  CHECK(torch::autograd::grad({slope.sum()}, {x})[0].equal(at::full({3}, 18.0)));
}

TEST_CASE("results of a branch stay as they are where no gradients are recorded") {
  const auto x = trained_tensor(3);
  const auto unchanged = at::ones({3});
  std::vector<c10::IValue> results = {unchanged};
  join_gradients(results, {at::ones({3})}, {true});
  CHECK(results[0].toTensor().is_same(unchanged));
  const at::NoGradGuard no_grad;
  join_gradients(results, {x}, {true});
  CHECK(results[0].toTensor().is_same(unchanged));
}
