#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "unit/parallel/tensor/tensor_fixture.hpp"

/// Each rule against the same operator on whole tensors: results, and gradients of all operands.
namespace hortator::test {

using parallel::Division;

using Tensors = std::vector<at::Tensor>;

struct RuleInput {
  at::Tensor whole;
  std::optional<Division> division = {};
};

struct RuleCase {
  std::string name;
  std::vector<RuleInput> inputs;
  std::function<at::Tensor(const Tensors&)> compute;
  std::optional<Division> result = {};  ///< how the result is divided
  std::int64_t gathers = 0;             ///< operators without a rule
};

inline at::Tensor leaf(const at::Tensor& values) {
  auto copy = values.clone();
  return values.is_floating_point() ? copy.requires_grad_() : copy;
}

/// Weights of the elements in a loss, so that each has another gradient.
inline at::Tensor weights_like(const at::Tensor& y) {
  return at::arange(y.numel(), at::kFloat).cos().view(y.sizes()) + 0.5;
}

inline void compare(const TensorGroup& group, const RuleCase& one) {
  INFO(one.name);
  Tensors whole, mixed;
  for (const auto& [values, division] : one.inputs) {
    whole.push_back(leaf(values));
    mixed.push_back(division ? group.divided(values, *division) : leaf(values));
  }
  const auto expected = one.compute(whole);
  const auto before = group.gathered();
  const auto found = one.compute(mixed);
  const bool is_alone = group.ranks->size() == 1;
  CHECK(group.gathered() - before == (is_alone ? 0 : one.gathers));
  CHECK(parallel::is_divided(found) == (one.result.has_value() && !is_alone));
  if (one.result && !is_alone) CHECK(parallel::operand_of(found).division == one.result);
  CHECK(found.sizes() == expected.sizes());
  check_close(group.whole(found), expected.detach());
  if (!expected.requires_grad()) return;
  const auto weights = weights_like(expected);
  (expected * weights).sum().backward();
  (found * weights).sum().backward();
  for (std::size_t i = 0; i < whole.size(); ++i) {
    if (!whole[i].grad().defined()) continue;
    INFO("gradient of operand " << i);
    REQUIRE(mixed[i].grad().defined());
    const auto& division = one.inputs[i].division;
    check_close(mixed[i].grad(), division ? group.part_of(whole[i].grad(), *division) : whole[i].grad());
  }
}

inline void compare_all(const std::vector<RuleCase>& cases) {
  const TensorGroup group;
  for (const auto& one : cases) compare(group, one);
}

inline at::Tensor numbers(at::IntArrayRef sizes, double shift = 0) {
  std::int64_t elements = 1;
  for (const auto size : sizes) elements *= size;
  return (at::arange(elements, at::kFloat) * 0.7 + shift).sin().view(sizes);
}

inline Division fused(std::int64_t dim) { return {.dim = dim, .blocks = 3}; }

}  // namespace hortator::test
