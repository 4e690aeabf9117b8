// What users do with activations and autograd's graph.
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/nn/functional/dropout.h>
#include <torch/utils.h>

#include <hortator/error.hpp>

#include "unit/parallel/tensor/tensor_fixture.hpp"

using namespace hortator;
using test::check_close;
using test::first;
using test::second;
using test::TensorGroup;

namespace {

struct Square : torch::autograd::Function<Square> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x) {
    context->save_for_backward({x});
    return x * x;
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& gradients) {
    return {gradients[0] * context->get_saved_variables()[0] * 2};
  }
};

struct Layer {
  at::Tensor x = at::arange(12, at::kFloat).sin().view({3, 4}).requires_grad_();
  at::Tensor weight = at::arange(32, at::kFloat).cos().view({8, 4}).requires_grad_();
};

/// Loss and gradients of compute(linear(x, weight)) with a divided weight, against those of a whole one.
template <typename Compute>
void compare_with_whole(const Compute& compute) {
  const TensorGroup group;
  Layer alone, mixed;
  const auto weight = group.divided(alone.weight.detach(), first);
  const auto expected = compute(at::linear(alone.x, alone.weight));
  const auto found = compute(at::linear(mixed.x, weight));
  check_close(found.detach(), expected.detach());
  expected.backward();
  found.backward();
  check_close(mixed.x.grad(), alone.x.grad());
  check_close(weight.grad(), group.part_of(alone.weight.grad(), first));
}

}  // namespace

TEST_CASE("a user's autograd function sees the whole tensor") {
  compare_with_whole([](const at::Tensor& h) { return at::tanh(Square::apply(at::tanh(h))).sum(); });
}

TEST_CASE("a hook on a divided activation changes its gradient") {
  compare_with_whole([](const at::Tensor& h) {
    auto y = at::tanh(h);
    y.register_hook([](const at::Tensor& gradient) { return gradient * 3; });
    return (y * y).sum();
  });
}

TEST_CASE("detached activations have no gradient, and may become leaves") {
  const TensorGroup group;
  Layer layer;
  const auto weight = group.divided(layer.weight.detach(), first);
  const auto h = at::linear(layer.x, weight);
  CHECK(h.requires_grad());
  CHECK_FALSE(h.detach().requires_grad());
  CHECK(h.sizes() == at::IntArrayRef({3, 8}));
  auto leaf = h.detach().requires_grad_();
  (leaf * leaf).sum().backward();
  REQUIRE(leaf.grad().defined());
  check_close(group.whole(leaf.grad()), 2 * group.whole(h));
}

TEST_CASE("backward from a divided tensor takes a whole gradient") {
  const TensorGroup group;
  Layer layer;
  const auto weight = group.divided(layer.weight.detach(), first);
  const auto gradient = at::arange(24, at::kFloat).view({3, 8});
  at::linear(layer.x, weight).backward(gradient);
  at::linear(layer.x.detach(), layer.weight).backward(gradient);
  check_close(weight.grad(), group.part_of(layer.weight.grad(), first));
}

TEST_CASE("second derivatives are those of one rank") {
  const TensorGroup group;
  Layer alone, mixed;
  const auto weight = group.divided(alone.weight.detach(), first);
  const auto penalty = [](const at::Tensor& x, const at::Tensor& w) {
    const auto loss = at::tanh(at::linear(x, w)).sum(1).pow(2).sum();
    const auto gradient = torch::autograd::grad({loss}, {x}, {}, /*retain_graph=*/true, /*create_graph=*/true)[0];
    gradient.pow(2).sum().backward();
  };
  penalty(alone.x, alone.weight);
  penalty(mixed.x, weight);
  check_close(mixed.x.grad(), alone.x.grad(), 1e-5);
  check_close(weight.grad(), group.part_of(alone.weight.grad(), first), 1e-5);
}

TEST_CASE("dropout differs between the parts of a tensor, and agrees on whole tensors") {
  const TensorGroup group;
  const auto ranks = group.ranks->size();
  torch::manual_seed(11);
  const auto divided = group.divided(at::ones({64, 64}), second);
  const auto dropped = group.whole(at::dropout(divided, 0.5, true));
  const auto parts = dropped.chunk(ranks, 1);
  for (std::size_t i = 1; i < parts.size(); ++i) CHECK_FALSE(at::equal(parts[0], parts[i]));
  CHECK(dropped.ne(0).to(at::kFloat).mean().item<double>() == Approx(0.5).margin(0.05));
  CHECK(dropped.max().item<double>() == 2);
  auto next = at::dropout(at::ones({16, 16}), 0.5, true);
  CHECK(at::equal(group.ranks->max(next), next));
}

TEST_CASE("attention's dropout differs between heads of different ranks") {
  const TensorGroup group;
  torch::manual_seed(11);
  const auto ones = at::ones({1, 4, 32, 8});
  const auto heads = group.divided(ones, second);
  const auto mixed = group.whole(at::scaled_dot_product_attention(heads, heads, heads, {}, 0.5));
  if (group.ranks->size() > 1) CHECK_FALSE(at::equal(mixed.select(1, 0), mixed.select(1, 3)));
}

TEST_CASE("parameters are initialised as whole ones are") {
  const TensorGroup group;
  const at::NoGradGuard no_grad;
  const auto parameter = group.divided(at::zeros({8, 4}), first);
  torch::manual_seed(5);
  parameter.normal_(0, 0.02);
  torch::manual_seed(5);
  CHECK(at::equal(group.whole(parameter), at::zeros({8, 4}).normal_(0, 0.02)));
  parameter.zero_();
  CHECK(group.whole(parameter).eq(0).all().item<bool>());
}

TEST_CASE("an optimizer's update of a divided parameter uses its part of the gradient") {
  const TensorGroup group;
  Layer alone;
  const auto weight = group.divided(alone.weight.detach(), first);
  at::linear(alone.x, alone.weight).pow(2).sum().backward();
  const auto gradient = group.part_of(alone.weight.grad(), first);
  const at::NoGradGuard no_grad;
  weight.add_(gradient, -0.1);
  check_close(group.whole(weight), alone.weight - 0.1 * alone.weight.grad());
}

TEST_CASE("what cannot be right is an error, and what has no rule is one if strict") {
  const TensorGroup group;
  if (group.ranks->size() == 1) return;
  Layer layer;
  const auto weight = group.divided(layer.weight.detach(), first);
  const auto h = at::linear(layer.x, weight).detach();
  CHECK_THROWS_WITH(h.as_strided({2, 2}, {1, 1}), ContainsSubstring("as_strided"));
  CHECK_THROWS_WITH(h.t_(), ContainsSubstring("in place"));
  CHECK(h.flip(0).sizes() == h.sizes());
  CHECK(group.ranks->gathered().at("aten::flip") == 1);
  group.ranks->set_strict(true);
  CHECK_THROWS_WITH(h.flip(0), ContainsSubstring("has no rule"));
}

TEST_CASE("values of a divided tensor can be read") {
  const TensorGroup group;
  Layer layer;
  const auto weight = group.divided(layer.weight.detach(), first);
  const auto h = at::linear(layer.x, weight).detach(), expected = at::linear(layer.x, layer.weight).detach();
  CHECK(h[1][7].item<float>() == Approx(expected[1][7].item<float>()));
  CHECK(h.argmax(-1).equal(expected.argmax(-1)));
  CHECK(at::allclose(h, expected));
}

TEST_CASE("a closed group is an error, not a wait") {
  const TensorGroup group;
  Layer layer;
  const auto weight = group.divided(layer.weight.detach(), first);
  const auto h = at::linear(layer.x, weight);
  group.ranks->close();
  if (group.ranks->size() > 1) CHECK_THROWS_WITH(h.sum(), ContainsSubstring("Accelerator has ended"));
}
