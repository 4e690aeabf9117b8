// Streams and events on the far device: LibTorch's generic classes carry them, whatever the kind of device.
#include "machine/device/stream.hpp"

#include <ATen/ATen.h>
#include <c10/core/StreamGuard.h>

#include "support/catch.hpp"
#include "support/far_device.hpp"

using namespace hortator;
using test::far_copies_to_come;
using test::far_device;

namespace {

/// Submits a copy to `side` and returns its end.
machine::Event copy_on(const machine::Stream& side, const at::Tensor& from, const at::Tensor& to) {
  side.follow_current();
  const c10::StreamGuard guard(side.get());
  to.copy_(from, /*non_blocking=*/true);
  return side.mark();
}

}  // namespace

TEST_CASE("an event is reached when the work before it is done, and no work after it") {
  const machine::Stream side(far_device);
  CHECK(side.mark().is_reached());
  const auto there = at::empty({2, 4}, far_device);
  const auto first = copy_on(side, at::ones({4}), there[0]);
  const auto second = copy_on(side, at::full({4}, 2.0), there[1]);
  CHECK_FALSE(first.is_reached());
  CHECK(far_copies_to_come() == 2);
  const auto same = first;
  same.hold_current_stream();
  CHECK(first.is_reached());
  CHECK_FALSE(second.is_reached());
  CHECK(far_copies_to_come() == 1);
  CHECK(there[0].sum().item<float>() == 4);
  machine::wait_until_idle(far_device);
  CHECK(second.is_reached());
  CHECK(there.sum().item<float>() == 12);
}

TEST_CASE("a stream waits for the current one, and not for others") {
  const machine::Stream first(far_device);
  const machine::Stream second(far_device);
  const auto there = at::empty({4}, far_device);
  const auto copied = copy_on(first, at::ones({4}), there);
  second.follow_current();
  CHECK_FALSE(copied.is_reached());
  const c10::StreamGuard guard(first.get());
  second.follow_current();
  CHECK(copied.is_reached());
}
