#include "checkpoint/write/tensor_source.hpp"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>

#include "formats/tensor/tensor_ranges.hpp"
#include "machine/device/copy_bytes.hpp"
#include "machine/device/copy_stream.hpp"
#include "machine/device/memory.hpp"
#include "machine/memory/stream_copy.hpp"

namespace hortator::checkpoint {
namespace {

constexpr std::size_t grain_bytes = 64;

std::size_t bytes_of(const TensorSource& source) {
  const auto bytes = static_cast<std::size_t>(source.slice.elements.size()) * source.tensor.element_size();
  return (bytes + grain_bytes - 1) / grain_bytes * grain_bytes;
}

at::Tensor page_locked(std::size_t bytes) {
  const auto memory = machine::page_locked(bytes);
  return machine::byte_view(memory.get(), bytes, at::kCPU, memory);
}

/// The device of those sources that are on one; a rank has one device.
c10::Device device_of(const std::vector<TensorSource>& sources) {
  const auto found = std::ranges::find_if(sources, [](const TensorSource& source) { return !source.tensor.is_cpu(); });
  return found == sources.end() ? c10::Device(at::kCPU) : found->tensor.device();
}

/// Passes over memory once if both sides are contiguous. Copies from a device may be under way until the result.
machine::CopyStream::Done copy_elements(const TensorSource& from, const at::Tensor& to,
                                        const machine::CopyStream& copies) {
  machine::CopyStream::Done last;
  std::int64_t done = 0;
  formats::for_each_piece(from.tensor, from.in_tensor(), to.numel(), [&](const at::Tensor& piece) {
    const auto part = to.narrow(0, done, piece.numel());
    if (formats::lies_flat(piece)) {
      machine::stream_copy(part.mutable_data_ptr(), piece.const_data_ptr(), piece.nbytes());
    } else {
      last = copies.copy(piece, part.view(piece.sizes()));
    }
    done += piece.numel();
  });
  return last;
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
  const bool from_device = !device_of(sources).is_cpu();
  if (memory_.defined() && memory_.nbytes() >= total && (is_page_locked_ || !from_device)) return;
  memory_ = at::Tensor();  // freed first, so that there are never two
  memory_ = from_device ? page_locked(total) : at::empty({static_cast<std::int64_t>(total)}, at::kByte);
  is_page_locked_ = from_device;
}

std::vector<TensorSource> StagingMemory::copy(const std::vector<TensorSource>& sources) {
  make_room(sources);
  std::vector<TensorSource> copies;
  const machine::CopyStream stream(device_of(sources));
  machine::CopyStream::Done last;  // of all, since a stream keeps their order
  std::size_t offset = 0;
  for (const auto& source : sources) {
    const auto copy = at::from_blob(static_cast<std::byte*>(memory_.mutable_data_ptr()) + offset,
                                    {source.slice.elements.size()}, source.tensor.options().device(at::kCPU));
    if (auto under_way = copy_elements(source, copy, stream)) last = std::move(under_way);
    copies.push_back(
        {.tensor = copy, .first = source.slice.elements.begin, .slice = source.slice, .is_part = source.is_part});
    offset += bytes_of(source);
  }
  if (last) last->synchronize();
  return copies;
}

}  // namespace hortator::checkpoint
