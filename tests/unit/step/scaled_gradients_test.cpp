#include "step/gradients/scaled_gradients.hpp"

#include <torch/optim/sgd.h>

#include <cmath>
#include <hortator/error.hpp>
#include <limits>

#include "core/log.hpp"
#include "step/optimizer/optimizer_parameters.hpp"
#include "support/catch.hpp"
#include "unit/parallel/reducer_fixture.hpp"

using namespace hortator;
using test::all_are;
using test::parameter;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

struct Scaling {
  explicit Scaling(GradScalerOptions options = {.init_scale = 4, .growth_interval = 1000})
      : scaler(options, fixture.communicator, at::kCPU) {}

  // A backward pass that gives each parameter the gradient `mine`.
  void backward(const std::vector<at::Tensor>& all, double mine,
                const std::vector<step::ScaledGradients*>& optimizers) {
    auto loss = at::zeros({});
    for (const auto& one : all) loss = loss + (one * mine).sum();
    for (auto* optimizer : optimizers) optimizer->expect_scaled();
    scaler.scaled(loss).backward();
  }

  test::ReducerFixture fixture;
  step::GradScaler scaler;
};

}  // namespace

TEST_CASE("losses are scaled in fp32 or fp64") {
  const Scaling s;
  CHECK(s.scaler.scaled(at::full({}, 3.0)).item<double>() == 12);
  CHECK(s.scaler.scaled(at::full({}, 3.0, at::kDouble)).scalar_type() == at::kDouble);
  const auto from_half = s.scaler.scaled(at::full({1}, 60000.0, at::kHalf));
  CHECK(from_half.scalar_type() == at::kFloat);
  CHECK(from_half.item<double>() == Approx(240000).epsilon(1e-3));
}

TEST_CASE("repeated unscale() unscales once") {
  Scaling s;
  auto a = parameter({3});
  torch::optim::SGD sgd({a}, 0.1);
  step::ScaledGradients gradients([&] { return step::parameters_of(sgd); }, s.scaler);
  s.backward({a}, 2, {&gradients});
  CHECK(all_are(a.grad(), 8));
  gradients.unscale();
  gradients.unscale();
  CHECK(all_are(a.grad(), 2));
  CHECK(gradients.may_step());
  CHECK(all_are(a.grad(), 2));
}

TEST_CASE("on an overflow on one rank no rank steps, and all have the same scale") {
  for (const double bad : {infinity, static_cast<double>(NAN)}) {
    for (int guilty = 0; guilty < test::ReducerFixture().size; ++guilty) {
      Scaling s;
      auto a = parameter({3});
      torch::optim::SGD sgd({a}, 0.1);
      step::ScaledGradients gradients([&] { return step::parameters_of(sgd); }, s.scaler);
      s.backward({a}, s.fixture.rank == guilty ? bad : 1, {&gradients});
      CHECK_FALSE(gradients.may_step());
      CHECK(s.scaler.now().scale == 2);
      a.mutable_grad().reset();
      s.backward({a}, 1, {&gradients});
      CHECK(gradients.may_step());
      CHECK(all_are(a.grad(), 1));
      CHECK(s.scaler.now() == LossScale{.scale = 2, .growth_tracker = 1});
    }
  }
}

TEST_CASE("a rank without gradients takes part in the verdict") {
  Scaling s;
  auto a = parameter({3});
  torch::optim::SGD sgd({a}, 0.1);
  step::ScaledGradients gradients([&] { return step::parameters_of(sgd); }, s.scaler);
  if (s.fixture.rank == 0) s.backward({a}, infinity, {&gradients});
  CHECK_FALSE(gradients.may_step());
  CHECK(gradients.may_step() == false);  // the gradient is still there
}

// torch's scaler would divide by the scale after the first optimizer's step.
TEST_CASE("two optimizers of one loss are unscaled by its scale, and skipped separately") {
  for (const bool first_overflows : {true, false}) {
    Scaling s({.init_scale = 4, .growth_factor = 8, .growth_interval = 1});
    auto a = parameter({2});
    auto b = parameter({2});
    torch::optim::SGD sgd_a({a}, 0.1);
    torch::optim::SGD sgd_b({b}, 0.1);
    step::ScaledGradients first([&] { return step::parameters_of(sgd_a); }, s.scaler);
    step::ScaledGradients second([&] { return step::parameters_of(sgd_b); }, s.scaler);
    s.backward({a, b}, 3, {&first, &second});
    if (first_overflows) a.mutable_grad().fill_(infinity);
    CHECK(first.may_step() != first_overflows);
    CHECK(s.scaler.now().scale == (first_overflows ? 2 : 32));
    CHECK(second.may_step());
    CHECK(all_are(b.grad(), 3));
  }
}

TEST_CASE("gradients add up over backward passes, even if the scale changed or they were unscaled in between") {
  Scaling s({.init_scale = 4, .growth_interval = 1});
  auto a = parameter({2});
  auto b = parameter({2});
  torch::optim::SGD sgd_a({a}, 0.1);
  torch::optim::SGD sgd_b({b}, 0.1);
  step::ScaledGradients slow([&] { return step::parameters_of(sgd_a); }, s.scaler);
  step::ScaledGradients quick([&] { return step::parameters_of(sgd_b); }, s.scaler);
  const std::vector<step::ScaledGradients*> both = {&slow, &quick};
  s.backward({a, b}, 1, both);
  CHECK(quick.may_step());  // the scale is 8 now
  b.mutable_grad().reset();
  s.backward({a, b}, 1, both);
  slow.unscale();  // as clipping a micro-step does
  CHECK(all_are(a.grad(), 2));
  s.backward({a, b}, 1, both);
  CHECK(slow.may_step());
  CHECK(all_are(a.grad(), 3));
  CHECK(quick.may_step());
  CHECK(all_are(b.grad(), 2));
}

TEST_CASE("an overflow before further passes is not forgotten") {
  Scaling s;
  auto a = parameter({2});
  torch::optim::SGD sgd({a}, 0.1);
  step::ScaledGradients gradients([&] { return step::parameters_of(sgd); }, s.scaler);
  s.backward({a}, infinity, {&gradients});
  gradients.unscale();
  a.mutable_grad().zero_();  // as a program that removes NaN may do
  s.backward({a}, 1, {&gradients});
  CHECK_FALSE(gradients.may_step());
  CHECK(gradients.may_step());
}

TEST_CASE("gradients of a plain loss.backward() stay as they are") {
  Scaling s;
  auto a = parameter({2});
  torch::optim::SGD sgd({a}, 0.1);
  step::ScaledGradients gradients([&] { return step::parameters_of(sgd); }, s.scaler);
  (a * 5).sum().backward();
  CHECK(gradients.may_step());
  CHECK(all_are(a.grad(), 5));
}

TEST_CASE("fp64 gradients are unscaled, fp16 gradients throw") {
  Scaling s;
  auto a = parameter({2}, at::kDouble);
  torch::optim::SGD sgd({a}, 0.1);
  step::ScaledGradients gradients([&] { return step::parameters_of(sgd); }, s.scaler);
  s.backward({a}, 0.1, {&gradients});
  gradients.unscale();
  CHECK(at::equal(a.grad(), at::full({2}, 0.1, at::kDouble)));

  auto half = parameter({2}, at::kHalf);
  torch::optim::SGD sgd_half({half}, 0.1);
  step::ScaledGradients halves([&] { return step::parameters_of(sgd_half); }, s.scaler);
  s.backward({half}, 1, {&halves});
  CHECK_THROWS_WITH(halves.unscale(), ContainsSubstring("gradients are fp16") && ContainsSubstring("in fp32"));
}

TEST_CASE("gradients that overflow at any scale are reported once, by one rank, with the step") {
  Scaling s({.init_scale = 4});
  int lines = 0;
  log::set_line_guard([&] { ++lines; });
  const auto step = [&](double found) { s.scaler.overflowed(at::full({1}, found)); };
  step(1);
  step(1);
  CHECK(lines == 0);  // the scale is 1
  step(1);
  step(1);
  step(0);
  step(1);
  log::set_line_guard({});
  CHECK(lines == (s.fixture.rank == 0 ? 1 : 0));
}

TEST_CASE("the scaler's state is saved and loaded bit for bit") {
  Scaling from({.init_scale = 65537.3, .growth_interval = 3});
  from.scaler.overflowed(at::zeros({1}));
  Scaling to;
  to.scaler.load(from.scaler.state());
  CHECK(to.scaler.now() == from.scaler.now());
  CHECK(to.scaler.now() == LossScale{.scale = 65537.3F, .growth_tracker = 1});
}
