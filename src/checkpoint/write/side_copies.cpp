#include "checkpoint/write/side_copies.hpp"

#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

namespace hortator::checkpoint {
namespace {

c10::Stream stream_behind_current(c10::Device device) {
  const c10::impl::VirtualGuardImpl guard(device.type());
  const auto stream = guard.getStreamFromGlobalPool(device, /*isHighPriority=*/false);
  c10::Event given_so_far(device.type());
  given_so_far.record(guard.getStream(device));
  given_so_far.block(stream);
  return stream;
}

}  // namespace

void SideCopies::copy(const at::Tensor& from, const at::Tensor& to) {
  if (!stream_) stream_ = stream_behind_current(from.device());
  const c10::StreamGuard there(*stream_);
  to.copy_(from, /*non_blocking=*/true);
}

void SideCopies::wait() const {
  if (stream_) stream_->synchronize();
}

}  // namespace hortator::checkpoint
