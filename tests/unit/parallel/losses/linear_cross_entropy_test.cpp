// Linear cross entropy in chunks, of a weight that is divided among all ranks, or whole on one, against LibTorch's
// functions on whole tensors.
#include <ATen/autocast_mode.h>

#include <hortator/error.hpp>
#include <hortator/nn/linear_cross_entropy.hpp>
#include <random>

#include "machine/memory/recycling_allocator.hpp"
#include "parallel/losses/scores_in_chunks.hpp"
#include "unit/parallel/tensor/tensor_fixture.hpp"

using namespace hortator;
using namespace hortator::test;
using nn::linear_cross_entropy;

namespace {

struct Case {
  std::int64_t rows = 4, width = 3, classes = 8;
  nn::LinearCrossEntropyOptions options = {};
  at::ScalarType type = at::kFloat;
};

/// The loss and the gradients of hidden states, weight and bias.
using Results = std::vector<at::Tensor>;

struct Inputs {
  at::Tensor hidden, weight, bias, target;
};

Inputs inputs_of(const Case& one, std::int64_t seed) {
  at::manual_seed(static_cast<std::uint64_t>(seed));
  auto target = at::randint(one.classes, {one.rows}, at::kLong);
  target.masked_fill_(at::rand({one.rows}) < 0.3, one.options.ignore_index);
  target[0] = one.classes - 1;
  return {.hidden = at::randn({one.rows, one.width}, one.type),
          .weight = at::randn({one.classes, one.width}, one.type),
          .bias = at::randn({one.classes}, one.type),
          .target = target};
}

Results plain(const Case& one, const Inputs& inputs) {
  const auto hidden = inputs.hidden.clone().requires_grad_(), weight = inputs.weight.clone().requires_grad_();
  const auto bias = inputs.bias.clone().requires_grad_();
  const auto scores = at::linear(hidden, weight, one.options.bias.defined() ? bias : at::Tensor());
  const auto loss =
      at::cross_entropy_loss(scores.to(at::promote_types(at::kFloat, scores.scalar_type())), inputs.target, {},
                             one.options.mean ? at::Reduction::Mean : at::Reduction::Sum, one.options.ignore_index,
                             one.options.label_smoothing);
  (loss * 0.5).backward();
  return {loss.detach(), hidden.grad(), weight.grad(), one.options.bias.defined() ? bias.grad() : at::Tensor()};
}

/// With the weight, and the bias, divided if there are several ranks.
Results ours(const Case& one, const Inputs& inputs, const TensorGroup& group) {
  const auto ranks = group.ranks->size();
  const auto division = parallel::padded(0, one.classes, ranks);
  const auto given = [&](const at::Tensor& whole) {
    return division ? group.divided(whole, *division) : whole.clone().requires_grad_();
  };
  const auto hidden = inputs.hidden.clone().requires_grad_(), weight = given(inputs.weight);
  auto options = one.options;
  if (options.bias.defined()) options.bias = given(inputs.bias);
  const auto loss =
      linear_cross_entropy(hidden.view({1, one.rows, one.width}), weight, inputs.target.view({1, one.rows}), options);
  (loss * 0.5).backward();
  const auto whole_gradient = [&](const at::Tensor& parameter) {
    return division ? group.ranks->join(parameter.grad(), *division) : parameter.grad();
  };
  return {loss.detach(), hidden.grad(), whole_gradient(weight),
          options.bias.defined() ? whole_gradient(options.bias) : at::Tensor()};
}

void check_all(const Results& found, const Results& expected, double tolerance) {
  for (std::size_t i = 0; i < expected.size(); ++i) {
    INFO("result " << i);
    if (expected[i].defined()) check_close(found[i], expected[i], tolerance);
  }
}

}  // namespace

TEST_CASE("linear cross entropy in chunks has the value and the gradients of the plain functions, of any shape") {
  const TensorGroup group;
  std::minstd_rand random(7);
  const auto draw = [&](int from, int to) { return from + static_cast<std::int64_t>(random() % (to - from + 1)); };
  for (int i = 0; i < 40; ++i) {
    Case one{.rows = draw(1, 70), .width = draw(1, 24), .classes = draw(4, 90)};
    one.options.rows_at_once = draw(0, 3) == 0 ? 0 : draw(1, 20);
    one.options.mean = draw(0, 1) == 1;
    one.options.ignore_index = draw(0, 1) == 1 ? -100 : -1;
    one.options.label_smoothing = draw(0, 1) == 1 ? 0.1 : 0;
    one.type = draw(0, 3) == 0 ? at::kDouble : at::kFloat;
    if (draw(0, 1) == 1) one.options.bias = at::zeros({1});
    INFO("case " << i << ": " << one.rows << " rows, width " << one.width << ", " << one.classes << " classes");
    const auto inputs = inputs_of(one, i);
    check_all(ours(one, inputs, group), plain(one, inputs), 1e-5);
  }
}

TEST_CASE("ranks whose classes are padded compute equal numbers of rows at once") {
  const TensorGroup group;
  const Case one{.rows = 500, .width = 2, .classes = 16384 * group.ranks->size() + 1};
  const auto inputs = inputs_of(one, 3);
  check_all(ours(one, inputs, group), plain(one, inputs), 1e-5);
}

TEST_CASE("linear cross entropy of a weight that is divided along its width has the same value and gradients") {
  const TensorGroup group;
  if (8 % group.ranks->size() != 0) return;
  for (const auto type : {at::kFloat, at::kDouble}) {
    const Case one{.rows = 6, .width = 8, .classes = 10, .options = {.label_smoothing = 0.1}, .type = type};
    const auto inputs = inputs_of(one, 2);
    const auto expected = plain(one, inputs);
    const auto hidden = inputs.hidden.clone().requires_grad_(), weight = group.divided(inputs.weight, second);
    const auto loss = linear_cross_entropy(hidden, weight, inputs.target, one.options);
    (loss * 0.5).backward();
    check_all({loss.detach(), hidden.grad(), group.ranks->join(weight.grad(), second)},
              {expected[0], expected[1], expected[2]}, 1e-5);
  }
}

TEST_CASE("linear cross entropy computes its products in autocast's type, and the loss in float32") {
  const TensorGroup group;
  const Case one{.rows = 33, .width = 16, .classes = 40, .options = {.rows_at_once = 8}};
  const auto inputs = inputs_of(one, 3);
  const auto exact = plain(one, inputs);
  at::autocast::set_autocast_enabled(at::kCPU, true);
  at::autocast::set_autocast_dtype(at::kCPU, at::kBFloat16);
  const auto cast = ours(one, inputs, group);
  at::autocast::clear_cache();
  at::autocast::set_autocast_enabled(at::kCPU, false);
  check_all(cast, exact, 2e-2);
  CHECK_FALSE(at::equal(cast[0], exact[0]));
}

TEST_CASE("linear cross entropy with classes that are filled up to a multiple has the same value and gradients") {
  at::manual_seed(9);
  const auto rows = at::randn({10, 6}), weight = at::randn({13, 6}), bias = at::randn({13});
  const auto results_of = [&](std::int64_t multiple) {
    const parallel::losses::ChunkedScores scores({.target = at::arange(10),
                                                  .is_ignored = at::arange(10).eq(3),
                                                  .classes = 13,
                                                  .part = 13,
                                                  .smoothing = 0.1,
                                                  .rows_at_once = 4,
                                                  .multiple = multiple,
                                                  .wants_rows = true,
                                                  .wants_weight = true,
                                                  .wants_bias = true});
    const auto found = scores.compute(rows, weight, bias);
    return Results{found.sum, found.of_rows, found.of_weight, found.of_bias};
  };
  check_all(results_of(8), results_of(1), 2e-6);
}

TEST_CASE("linear cross entropy of rows that are all ignored: a sum of 0 without gradients, and no mean") {
  const TensorGroup group;
  Case one{.options = {.mean = false}};
  auto inputs = inputs_of(one, 4);
  inputs.target.fill_(-100);
  const auto found = ours(one, inputs, group);
  CHECK(found[0].item<float>() == 0);
  CHECK(found[1].abs().max().item<float>() == 0);
  CHECK(found[2].abs().max().item<float>() == 0);
  one.options.mean = true;
  CHECK(ours(one, inputs, group)[0].isnan().item<bool>());
}

TEST_CASE("linear cross entropy computes only the gradients that are wanted") {
  const TensorGroup group;
  const Case one;
  const auto inputs = inputs_of(one, 5);
  CHECK_FALSE(linear_cross_entropy(inputs.hidden, inputs.weight, inputs.target).requires_grad());
  const auto hidden = inputs.hidden.clone().requires_grad_();
  const auto loss = linear_cross_entropy(hidden, inputs.weight, inputs.target);
  loss.backward();
  check_close(hidden.grad(), plain(one, inputs)[1] * 2, 1e-5);
  const at::NoGradGuard no_grad;
  check_close(linear_cross_entropy(hidden, inputs.weight, inputs.target), loss.detach());
}

TEST_CASE("linear cross entropy refuses second derivatives, inputs that do not fit, and targets beyond the classes") {
  const TensorGroup group;
  const auto inputs = inputs_of({}, 6);
  const auto hidden = inputs.hidden.clone().requires_grad_();
  const auto loss = linear_cross_entropy(hidden, inputs.weight, inputs.target);
  CHECK_THROWS_WITH(torch::autograd::grad({loss}, {hidden}, {}, /*retain_graph=*/true, /*create_graph=*/true),
                    ContainsSubstring("no second derivatives"));
  CHECK_THROWS_WITH(linear_cross_entropy(inputs.hidden, inputs.weight.t(), inputs.target),
                    ContainsSubstring("[.., width]"));
  CHECK_THROWS_WITH(linear_cross_entropy(inputs.hidden, inputs.weight, inputs.target.to(at::kFloat)),
                    ContainsSubstring("whole number"));
  CHECK_THROWS_WITH(linear_cross_entropy(inputs.hidden, inputs.weight, at::full({4}, 8, at::kLong)),
                    ContainsSubstring("came to linear_cross_entropy() of 8"));
  CHECK_THROWS_WITH(linear_cross_entropy(inputs.hidden, inputs.weight, inputs.target, {.label_smoothing = 2}),
                    ContainsSubstring("from 0 to 1"));
}

TEST_CASE("linear cross entropy of 4096 tokens and 32000 words takes at most 15 % of the plain functions' memory") {
  const TensorGroup group;
  if (group.ranks->size() > 1) return;
  const Case one{.rows = 4096, .width = 64, .classes = 32000};
  const auto inputs = inputs_of(one, 8);
  const machine::RecyclingAllocator recycling(0);
  const auto peak_of = [](const auto& work) {
    const auto before = machine::RecyclingAllocator::counters().used_bytes;
    machine::RecyclingAllocator::reset_peak();
    work();
    return static_cast<double>(machine::RecyclingAllocator::counters().peak_used_bytes - before);
  };
  Results expected, found;
  const auto most = peak_of([&] { expected = plain(one, inputs); });
  const auto least = peak_of([&] { found = ours(one, inputs, group); });
  CHECK(least <= 0.15 * most);
  check_all(found, expected, 1e-5);
}
