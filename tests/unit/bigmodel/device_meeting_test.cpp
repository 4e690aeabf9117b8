#include "bigmodel/device_meeting.hpp"

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

std::optional<c10::Device> meet(std::vector<MeetingGuest> guests) { return meeting_place(guests); }

/// A device whose tensors have shapes and no values: there is one on every machine.
const auto elsewhere = c10::Device(c10::kMeta);

}  // namespace

TEST_CASE("tensors meet where a parameter lies, else on the later device, and never on the host", "[device_meeting]") {
  CHECK_FALSE(meet({}));
  CHECK_FALSE(meet({{host}}));
  CHECK_FALSE(meet({{first_device}, {first_device, true}}));
  CHECK(meet({{host}, {first_device}}) == first_device);
  CHECK(meet({{host, true}, {second_device}}) == second_device);
  CHECK(meet({{first_device}, {second_device}}) == second_device);
  CHECK(meet({{second_device}, {first_device}}) == second_device);
  CHECK(meet({{second_device}, {first_device, true}, {host}}) == first_device);
}

TEST_CASE("an operator gets its tensors on one device", "[device_meeting]") {
  const auto weight = at::empty({3, 4}, elsewhere);
  const auto x = at::randn({2, 4});
  const auto there = at::ones({2, 4}, elsewhere);
  const DeviceHomes homes({weight});
  CHECK_THROWS(x + there);
  const DeviceMeeting meeting(homes);
  CHECK((x + there).device() == elsewhere);
  const auto y = at::linear(x, weight);
  CHECK(y.device() == elsewhere);
  CHECK(y.sizes() == at::IntArrayRef({2, 3}));
  CHECK(at::cat({x, there}).sizes() == at::IntArrayRef({4, 4}));
  CHECK(there.index({at::tensor({1, 0})}).device() == elsewhere);
  CHECK(at::ones({2, 3}).device() == host);
  CHECK((x + at::scalar_tensor(2.0)).device() == host);
}

TEST_CASE("what copies between devices goes on doing that", "[device_meeting]") {
  const auto there = at::empty({3}, elsewhere);
  const DeviceHomes homes({there});
  const DeviceMeeting meeting(homes);
  const auto here = at::ones({3});
  CHECK(here.to(elsewhere).device() == elsewhere);
  there.copy_(here);
  CHECK(there.device() == elsewhere);
  CHECK(here.device() == host);
}

TEST_CASE("what is changed in place stays where it is", "[device_meeting]") {
  auto there = at::ones({3}, elsewhere);
  const DeviceHomes homes({at::empty({1}, elsewhere)});
  const DeviceMeeting meeting(homes);
  const auto* const before = there.unsafeGetTensorImpl();
  CHECK(there.add_(at::ones({3})).unsafeGetTensorImpl() == before);
}

TEST_CASE("parameters that are offloaded come to the device of what they work on", "[device_meeting]") {
  torch::nn::Linear linear(4, 3);
  const auto offload = cpu_offload(linear);
  const DeviceHomes homes({at::empty({1}, elsewhere)});
  const DeviceMeeting meeting(homes);
  const at::NoGradGuard no_grad;
  CHECK(linear->forward(at::ones({2, 4}, elsewhere)).device() == elsewhere);
  CHECK(linear->forward(at::ones({2, 4})).device() == host);
}

TEST_CASE("outside of it nothing is moved", "[device_meeting]") {
  const DeviceHomes homes({at::empty({1}, elsewhere)});
  { const DeviceMeeting meeting(homes); }
  CHECK_THROWS(at::ones({2}) + at::ones({2}, elsewhere));
}

}  // namespace hortator::bigmodel
