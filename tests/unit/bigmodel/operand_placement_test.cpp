#include "bigmodel/operand_placement.hpp"

#include <ATen/ATen.h>
#include <torch/nn/modules/linear.h>

#include <hortator/bigmodel/big_models.hpp>
#include <hortator/bigmodel/offload.hpp>

#include "support/catch.hpp"

namespace hortator::bigmodel {
namespace {

const auto first_device = c10::Device(c10::kCUDA, 0);
const auto second_device = c10::Device(c10::kCUDA, 1);
const auto host = c10::Device(c10::kCPU);

std::optional<c10::Device> device_for(std::vector<OperandPlacement> operands) { return common_device(operands); }

/// A device that every machine has; its tensors have shapes and no values.
const auto elsewhere = c10::Device(c10::kMeta);

}  // namespace

TEST_CASE("an operator runs on the device of a parameter, else on the highest device, never on the host",
          "[operand_placement]") {
  CHECK_FALSE(device_for({}));
  CHECK_FALSE(device_for({{host}}));
  CHECK_FALSE(device_for({{first_device}, {first_device, true}}));
  CHECK(device_for({{host}, {first_device}}) == first_device);
  CHECK(device_for({{host, true}, {second_device}}) == second_device);
  CHECK(device_for({{first_device}, {second_device}}) == second_device);
  CHECK(device_for({{second_device}, {first_device}}) == second_device);
  CHECK(device_for({{second_device}, {first_device, true}, {host}}) == first_device);
}

TEST_CASE("an operator gets its tensors on one device", "[operand_placement]") {
  const auto weight = at::empty({3, 4}, elsewhere);
  const auto x = at::randn({2, 4});
  const auto there = at::ones({2, 4}, elsewhere);
  const ResidentStorages residents({weight});
  CHECK_THROWS(x + there);
  const OperandPlacementScope scope(residents);
  CHECK((x + there).device() == elsewhere);
  const auto y = at::linear(x, weight);
  CHECK(y.device() == elsewhere);
  CHECK(y.sizes() == at::IntArrayRef({2, 3}));
  CHECK(at::cat({x, there}).sizes() == at::IntArrayRef({4, 4}));
  CHECK(there.index({at::tensor({1, 0})}).device() == elsewhere);
  CHECK(at::ones({2, 3}).device() == host);
  CHECK((x + at::scalar_tensor(2.0)).device() == host);
}

TEST_CASE("operators that copy between devices are left alone", "[operand_placement]") {
  const auto there = at::empty({3}, elsewhere);
  const ResidentStorages residents({there});
  const OperandPlacementScope scope(residents);
  const auto here = at::ones({3});
  CHECK(here.to(elsewhere).device() == elsewhere);
  there.copy_(here);
  CHECK(there.device() == elsewhere);
  CHECK(here.device() == host);
}

TEST_CASE("a tensor that is changed in place stays on its device", "[operand_placement]") {
  auto there = at::ones({3}, elsewhere);
  const ResidentStorages residents({at::empty({1}, elsewhere)});
  const OperandPlacementScope scope(residents);
  const auto* const before = there.unsafeGetTensorImpl();
  CHECK(there.add_(at::ones({3})).unsafeGetTensorImpl() == before);
}

TEST_CASE("offloaded parameters are copied to the device of the input", "[operand_placement]") {
  torch::nn::Linear linear(4, 3);
  const auto offload = cpu_offload(linear);
  const ResidentStorages residents({at::empty({1}, elsewhere)});
  const OperandPlacementScope scope(residents);
  const at::NoGradGuard no_grad;
  CHECK(linear->forward(at::ones({2, 4}, elsewhere)).device() == elsewhere);
  CHECK(linear->forward(at::ones({2, 4})).device() == host);
}

TEST_CASE("no tensor is moved outside the scope", "[operand_placement]") {
  const ResidentStorages residents({at::empty({1}, elsewhere)});
  { const OperandPlacementScope scope(residents); }
  CHECK_THROWS(at::ones({2}) + at::ones({2}, elsewhere));
}

}  // namespace hortator::bigmodel
