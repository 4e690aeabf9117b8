#include "machine/device/copy_stream.hpp"

#include <c10/core/GradMode.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

namespace hortator::machine {

CopyStream::CopyStream(c10::Device device) : device_(device) {
  if (device.is_cpu()) return;
  stream_ = c10::impl::VirtualGuardImpl(device.type()).getStreamFromGlobalPool(device, /*isHighPriority=*/false);
}

c10::Stream CopyStream::current() const { return c10::impl::VirtualGuardImpl(device_.type()).getStream(device_); }

CopyStream::Done CopyStream::copy(const at::Tensor& from, const at::Tensor& to) const {
  const at::NoGradGuard no_grad;
  if (!stream_) {
    to.copy_(from);
    return nullptr;
  }
  c10::Event earlier_work(device_.type());
  earlier_work.record(current());
  earlier_work.block(*stream_);
  {
    const c10::StreamGuard guard(*stream_);
    to.copy_(from, /*non_blocking=*/true);
  }
  auto done = std::make_shared<c10::Event>(device_.type());
  done->record(*stream_);
  return done;
}

void CopyStream::hold_current(const Done& copy) const {
  if (copy) copy->block(current());
}

void CopyStream::wait() const {
  if (!stream_) return;
  c10::Event last(device_.type());
  last.record(*stream_);
  last.synchronize();
}

}  // namespace hortator::machine
