#include "checkpoint/write/tensor_source.hpp"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <c10/core/Event.h>
#include <c10/core/Stream.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <optional>

#include "formats/tensor/tensor_ranges.hpp"
#include "machine/device/memory.hpp"
#include "machine/memory/stream_copy.hpp"

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

/// Copies tensors of one device to page-locked memory on a separate stream. The copies begin after all work that was
/// queued on the current stream before the first of them, and do not wait for each other.
class SideCopies {
 public:
  void copy(const at::Tensor& from, const at::Tensor& to) {
    if (!stream_) stream_ = stream_after_current(from.device());
    const c10::StreamGuard guard(*stream_);
    to.copy_(from, /*non_blocking=*/true);
  }
  /// Returns when all copies are complete. Call it before the source tensors are changed or freed.
  void wait() const {
    if (stream_) stream_->synchronize();
  }

 private:
  std::optional<c10::Stream> stream_;
};

constexpr std::size_t grain_bytes = 64;

std::size_t bytes_of(const TensorSource& source) {
  const auto bytes = static_cast<std::size_t>(source.slice.elements.size()) * source.tensor.element_size();
  return (bytes + grain_bytes - 1) / grain_bytes * grain_bytes;
}

at::Tensor page_locked(std::size_t bytes) {
  const auto memory = machine::page_locked(bytes);
  return at::from_blob(
      memory.get(), {static_cast<std::int64_t>(bytes)}, [memory](void*) {}, at::kByte);
}

/// Passes over memory once if both sides are contiguous.
void copy_elements(const TensorSource& from, const at::Tensor& to, SideCopies& from_device) {
  std::int64_t done = 0;
  formats::for_each_piece(from.tensor, from.in_tensor(), to.numel(), [&](const at::Tensor& piece) {
    const auto part = to.narrow(0, done, piece.numel());
    if (formats::lies_flat(piece)) {
      machine::stream_copy(part.mutable_data_ptr(), piece.const_data_ptr(), piece.nbytes());
    } else if (!piece.is_cpu()) {
      from_device.copy(piece, part.view(piece.sizes()));
    } else {
      part.view(piece.sizes()).copy_(piece);
    }
    done += piece.numel();
  });
}

}  // namespace

std::vector<TensorSource> sources_of(const std::vector<TensorSlice>& work, const std::vector<at::Tensor>& tensors) {
  std::vector<TensorSource> sources;
  for (const auto& slice : work) sources.push_back({.tensor = tensors[slice.tensor].detach(), .slice = slice});
  return sources;
}

// Copies from a device reach full speed, and overlap with its work, only with page-locked memory.
void StagingMemory::make_room(const std::vector<TensorSource>& sources) {
  std::size_t total = 0;
  for (const auto& source : sources) total += bytes_of(source);
  const bool from_device =
      std::ranges::any_of(sources, [](const TensorSource& source) { return !source.tensor.is_cpu(); });
  if (memory_.defined() && memory_.nbytes() >= total && (is_page_locked_ || !from_device)) return;
  memory_ = at::Tensor();  // freed first, so that there are never two
  memory_ = from_device ? page_locked(total) : at::empty({static_cast<std::int64_t>(total)}, at::kByte);
  is_page_locked_ = from_device;
}

std::vector<TensorSource> StagingMemory::copy(const std::vector<TensorSource>& sources) {
  make_room(sources);
  std::vector<TensorSource> copies;
  SideCopies from_device;
  std::size_t offset = 0;
  for (const auto& source : sources) {
    const auto copy = at::from_blob(static_cast<std::byte*>(memory_.mutable_data_ptr()) + offset,
                                    {source.slice.elements.size()}, source.tensor.options().device(at::kCPU));
    copy_elements(source, copy, from_device);
    copies.push_back(
        {.tensor = copy, .first = source.slice.elements.begin, .slice = source.slice, .is_part = source.is_part});
    offset += bytes_of(source);
  }
  from_device.wait();
  return copies;
}

}  // namespace hortator::checkpoint
