#include "shard/pinned_store.hpp"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <c10/core/Event.h>
#include <c10/core/GradMode.h>
#include <c10/core/StreamGuard.h>

#include <memory>

namespace hortator::shard {

PinnedStore::PinnedStore(const std::vector<Page>& pages, c10::Device device)
    : device_(device.type()), stream_(device_.getStreamFromGlobalPool(device, /*isHighPriority=*/false)) {
  const auto options = at::TensorOptions(at::kByte).pinned_memory(true);
  for (const auto& page : pages) pages_.push_back(at::empty({static_cast<std::int64_t>(page.bytes)}, options));
}

at::Tensor PinnedStore::on_device(std::byte* frame, const Page& page) const {
  return at::from_blob(
      frame, {static_cast<std::int64_t>(page.bytes)}, [](void*) {},
      at::TensorOptions(stream_.device()).dtype(at::kByte), stream_.device());
}

comm::Work PinnedStore::fetch(const Page& page, std::span<std::byte> frame) {
  return copy(kept(page), on_device(frame.data(), page));
}

comm::Work PinnedStore::publish(const Page& page, std::span<const std::byte> frame) {
  return copy(on_device(const_cast<std::byte*>(frame.data()), page), kept(page));
}

// Fetched into a frame that others have just left, or published while it may still be written: both come after that.
comm::Work PinnedStore::copy(const at::Tensor& from, const at::Tensor& to) const {
  const at::NoGradGuard no_grad;
  c10::Event given_so_far(stream_.device_type());
  given_so_far.record(device_.getStream(stream_.device()));
  given_so_far.block(stream_);
  {
    const c10::StreamGuard there(stream_);
    to.copy_(from, /*non_blocking=*/true);
  }
  const auto done = std::make_shared<c10::Event>(stream_.device_type());
  done->record(stream_);
  return comm::Work(
      [done, device = stream_.device()] { done->block(c10::impl::VirtualGuardImpl(device.type()).getStream(device)); });
}

}  // namespace hortator::shard
