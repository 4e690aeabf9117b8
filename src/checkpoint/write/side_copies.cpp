#include "checkpoint/write/side_copies.hpp"

#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

namespace hortator::checkpoint {
namespace {

c10::Stream stream_after_current(c10::Device device) {
  const c10::impl::VirtualGuardImpl guard(device.type());
  const auto stream = guard.getStreamFromGlobalPool(device, /*isHighPriority=*/false);
  c10::Event queued_work(device.type());
  queued_work.record(guard.getStream(device));
  queued_work.block(stream);
  return stream;
}

}  // namespace

void SideCopies::copy(const at::Tensor& from, const at::Tensor& to) {
  if (!stream_) stream_ = stream_after_current(from.device());
  const c10::StreamGuard guard(*stream_);
  to.copy_(from, /*non_blocking=*/true);
}

void SideCopies::wait() const {
  if (stream_) stream_->synchronize();
}

}  // namespace hortator::checkpoint
