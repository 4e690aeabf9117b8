#include "step/gradients/clip.hpp"

#include <torch/nn/utils/clip_grad.h>

#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/sparse_coo_tensor.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <cmath>
#include <hortator/error.hpp>
#include <limits>

#include "support/catch.hpp"

using namespace hortator;
using step::gradient_groups;
using step::total_norm;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

at::Tensor with_gradient(const at::Tensor& gradient) {
  auto parameter = at::zeros(gradient.sizes(), gradient.options().layout(at::kStrided)).requires_grad_();
  parameter.mutable_grad() = gradient;
  return parameter;
}

std::vector<at::Tensor> parameters(at::ScalarType type = at::kFloat) {
  at::manual_seed(1);
  std::vector<at::Tensor> all;
  for (const auto size : {3, 1, 40}) all.push_back(with_gradient(at::randn({size, 2}).to(type)));
  return all;
}

at::Tensor clip(const std::vector<at::Tensor>& all, double max_norm, double norm_type = 2) {
  const auto groups = gradient_groups(all);
  auto norm = total_norm(groups, norm_type);
  step::scale_to_norm(groups, norm, max_norm);
  return norm;
}

}  // namespace

TEST_CASE("norms and clipped gradients of any type equal torch's") {
  for (const auto type : {at::kFloat, at::kDouble}) {
    for (const double p : {0.5, 1.0, 2.0, 3.0, infinity}) {
      for (const double max_norm : {0.0, 0.1, 1e6}) {
        const auto ours = parameters(type);
        const auto theirs = parameters(type);
        const auto norm = clip(ours, max_norm, p);
        CHECK(norm.scalar_type() == type);
        CHECK(norm.item<double>() == Approx(torch::nn::utils::clip_grad_norm_(theirs, max_norm, p)));
        for (std::size_t i = 0; i < ours.size(); ++i) CHECK(at::allclose(ours[i].grad(), theirs[i].grad()));
      }
    }
  }
}

TEST_CASE("gradients within the norm are not touched") {
  const auto all = parameters();
  const auto before = all[2].grad().clone();
  clip(all, 1e6);
  CHECK(at::equal(all[2].grad(), before));
}

TEST_CASE("a tied parameter counts once, and is clipped once") {
  const auto tied = with_gradient(at::full({1}, 3.0));
  const auto other = with_gradient(at::full({1}, 4.0));
  CHECK(clip({tied, other, tied}, 1).item<double>() == Approx(5));
  CHECK(tied.grad().item<double>() == Approx(0.6));
}

TEST_CASE("mixed types and devices have one norm, in the widest type") {
  std::vector<at::Tensor> all = {with_gradient(at::full({1}, 2.0)), with_gradient(at::full({1}, 4.0, at::kBFloat16)),
                                 with_gradient(at::full({1}, 4.0, at::kHalf))};
  CHECK(clip(all, 1e9).scalar_type() == at::kFloat);
  CHECK(clip(all, 3).item<double>() == Approx(6));
  for (const auto& parameter : all) CHECK(clip({parameter}, 1e9).item<double>() <= 2.01);
  all.push_back(with_gradient(at::full({1}, 4.0, at::kDouble)));
  CHECK(clip(all, 1).scalar_type() == at::kDouble);
  CHECK(all[3].grad().scalar_type() == at::kDouble);
}

TEST_CASE("norms of 16-bit gradients neither overflow nor round in 16 bits") {
  CHECK(clip({with_gradient(at::full({100}, 60000.0, at::kHalf))}, infinity).item<double>() ==
        Approx(6e5).epsilon(1e-3));
  CHECK(clip({with_gradient(at::ones({1001}, at::kBFloat16))}, infinity, 1).item<double>() == Approx(1001));
}

TEST_CASE("duplicate entries of sparse gradients are added first") {
  const auto indices = at::tensor({1, 1, 2}, at::kLong).view({1, 3});
  const auto embedding =
      with_gradient(at::sparse_coo_tensor(indices, at::tensor({1.0, 2.0, 4.0}, at::kFloat).view({3, 1}), {4, 1}));
  CHECK(clip({embedding}, 1).item<double>() == Approx(5));
  CHECK(embedding.grad().to_dense().view({-1})[2].item<double>() == Approx(0.8));
}

TEST_CASE("the norm is zero without gradients, and empty gradients do not count") {
  CHECK(clip({}, 1).item<double>() == 0);
  CHECK(clip({at::zeros({2}).requires_grad_()}, 1).item<double>() == 0);
  CHECK(clip({with_gradient(at::zeros({0, 3})), with_gradient(at::full({1}, 3.0))}, 1, infinity).item<double>() == 3);
}

TEST_CASE("a gradient that is not finite shows in the norm") {
  CHECK(std::isinf(clip({with_gradient(at::full({2}, infinity))}, 1).item<double>()));
  CHECK(std::isnan(clip({with_gradient(at::full({2}, NAN)), with_gradient(at::ones({1}))}, 1).item<double>()));
}

TEST_CASE("clamping works element by element") {
  const auto all = {with_gradient(at::arange(-3, 4).to(at::kFloat)),
                    with_gradient(at::arange(-3, 4).to(at::kBFloat16))};
  step::clamp(gradient_groups(all), 1.5);
  for (const auto& one : all) {
    CHECK(at::equal(one.grad().to(at::kFloat), at::arange(-3, 4).to(at::kFloat).clamp(-1.5, 1.5)));
  }
}

TEST_CASE("a negative limit throws with the argument's name") {
  CHECK_THROWS_WITH(step::check_limit(-1, "max_norm"), ContainsSubstring("max_norm is -1"));
  CHECK_THROWS_WITH(step::check_limit(NAN, "clip_value"), ContainsSubstring("clip_value is"));
  CHECK_NOTHROW(step::check_limit(0, "max_norm"));
}
