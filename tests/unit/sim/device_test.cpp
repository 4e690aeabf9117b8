// Random numbers and precision on the simulated accelerator.
#include <ATen/autocast_mode.h>
#include <ATen/ops/_amp_foreach_non_finite_check_and_unscale.h>
#include <ATen/ops/_amp_update_scale.h>
#include <torch/utils.h>

#include <hortator/training/autocast.hpp>

#include "machine/device/device.hpp"
#include "sim_fixture.hpp"

using namespace hortator;

TEST_CASE("random numbers depend on the seed and the order of submission, not on when they are drawn", "[sim]") {
  std::vector<std::vector<at::Tensor>> drawn;
  for (const auto policy : test::policies) {
    test::start_clean(policy);
    torch::manual_seed(4);
    auto& numbers = drawn.emplace_back();
    numbers.push_back(at::randn({100}, sim::device()));
    numbers.push_back(at::rand({100}, sim::device()));
    numbers.push_back(at::dropout(at::ones({100}, sim::device()), 0.5, true));
    numbers.push_back(at::randperm(100, at::TensorOptions(sim::device()).dtype(at::kLong)));
  }
  for (const auto& numbers : drawn)
    for (std::size_t i = 0; i < numbers.size(); ++i) CHECK(at::equal(numbers[i], drawn.front()[i]));
  CHECK_FALSE(at::equal(drawn[0][0], drawn[0][1]));
  const auto zeros = drawn[0][2].eq(0).sum().item<std::int64_t>();
  CHECK((zeros > 25 && zeros < 75));
}

TEST_CASE("the state of a generator is saved and set", "[sim]") {
  test::start_clean(sim::Policy::late);
  auto generator = at::globalContext().defaultGenerator(sim::device(1));
  generator.set_current_seed(9);
  const auto state = generator.get_state();
  const auto first = at::rand({10}, sim::device(1));
  const auto second = at::rand({10}, sim::device(1));
  generator.set_state(state);
  CHECK(at::equal(first, at::rand({10}, sim::device(1))));
  CHECK(at::equal(second, at::rand({10}, sim::device(1))));
  CHECK(generator.clone().get_state().equal(generator.get_state()));
}

TEST_CASE("autocast computes products in the lower precision and sums in the higher one", "[sim]") {
  test::start_clean(sim::Policy::late);
  const Autocast autocast(c10::kPrivateUse1, at::kBFloat16);
  const auto product = at::mm(at::ones({4, 4}, sim::device()), at::ones({4, 4}, sim::device()));
  CHECK(product.scalar_type() == at::kBFloat16);
  CHECK(at::softmax(product, 1).scalar_type() == at::kFloat);
  CHECK(product.sum().item<float>() == 64);
}

TEST_CASE("the operators of a gradient scaler find infinite numbers and change the scale", "[sim]") {
  test::start_clean(sim::Policy::late);
  const auto number = [](double value, at::ScalarType type = at::kFloat) {
    return at::full({1}, value, at::TensorOptions(sim::device()).dtype(type));
  };
  auto found = number(0);
  std::vector<at::Tensor> gradients = {number(8), number(std::numeric_limits<double>::infinity())};
  at::_amp_foreach_non_finite_check_and_unscale_(gradients, found, number(0.5));
  auto scale = number(16);
  auto growth = number(0, at::kInt);
  at::_amp_update_scale_(scale, growth, found, 2, 0.5, 10);
  CHECK(gradients[0].item<float>() == 4);
  CHECK(found.item<float>() == 1);
  CHECK(scale.item<float>() == 8);
}

TEST_CASE("the devices are the program's kind of accelerator", "[sim]") {
  CHECK(machine::visible_devices().size() == sim::devices);
  CHECK(machine::visible_uuids().front() == "SIM-0");
  CHECK(machine::kind_of(sim::device())->name == "sim");
  CHECK_THROWS(machine::set_current(sim::device(sim::devices)));
}
