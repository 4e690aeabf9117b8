// The device of these tests behaves like one: what it computes, and what it refuses.
#include "support/far_device.hpp"

#include <ATen/ATen.h>
#include <torch/nn/modules/linear.h>

#include "machine/device/copy_stream.hpp"
#include "support/catch.hpp"

using hortator::test::far_bytes;
using hortator::test::far_device;

TEST_CASE("operators and backward on the far device give the CPU's results", "[far]") {
  at::manual_seed(1);
  torch::nn::Linear here(5, 3);
  const auto input = at::randn({2, 5});
  const auto expected = here->forward(input);
  expected.square().sum().backward();
  const auto gradient = here->weight.grad().clone();
  here->zero_grad();
  const auto before = far_bytes();
  here->to(far_device);
  CHECK(here->weight.device() == far_device);
  CHECK(far_bytes() == before + 4 * (15 + 3));
  const auto actual = here->forward(input.to(far_device));
  actual.square().sum().backward();
  CHECK(at::equal(actual.to(at::kCPU), expected));
  CHECK(at::equal(here->weight.grad().to(at::kCPU), gradient));
}

TEST_CASE("copies on a side stream are late, and complete for those who wait", "[far]") {
  const auto here = at::ones({4});
  const auto there = at::empty({4}, far_device);
  const hortator::machine::CopyStream copies(far_device);
  const auto done = copies.copy(here, there);
  CHECK(hortator::test::far_copies_to_come() == 1);
  CHECK(there.isnan().all().item<bool>());
  copies.hold_current(done);
  CHECK(hortator::test::far_copies_to_come() == 0);
  CHECK(there.sum().item<float>() == 4);
}

TEST_CASE("memory of the far device is distinct from the host's", "[far]") {
  const auto there = at::ones({4}, far_device);
  CHECK(there.sum().item<float>() == 4);
  CHECK(reinterpret_cast<std::uintptr_t>(there.const_data_ptr()) > hortator::test::far_bit);
}
