#include "parallel/data_parallel/buffer_broadcast.hpp"

#include <ATen/core/LegacyTypeDispatch.h>
#include <c10/core/GradMode.h>

#include "parallel/data_parallel/alias.hpp"

namespace hortator::parallel {
namespace {

constexpr std::int64_t alignment = 16;  // of the largest element, complex<double>

std::int64_t room_of(const at::Tensor& tensor) {
  return (tensor.numel() * static_cast<std::int64_t>(tensor.element_size()) + alignment - 1) / alignment * alignment;
}

}  // namespace

// Buffers may be resized or converted between two passes.
bool BufferBroadcast::is_laid_out() const {
  if (places_.size() != buffers_.size()) return false;
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    if (buffers_[i].sizes() != places_[i].sizes() || buffers_[i].scalar_type() != places_[i].scalar_type())
      return false;
  }
  return true;
}

void BufferBroadcast::lay_out() {
  std::int64_t bytes = 0;
  for (const auto& buffer : buffers_) bytes += room_of(buffer);
  memory_ = communicator_.allocate(bytes, at::kByte);
  places_.clear();
  std::int64_t begin = 0;
  for (const auto& buffer : buffers_) {
    places_.push_back(
        alias(memory_, begin / static_cast<std::int64_t>(buffer.element_size()), buffer, buffer.scalar_type()));
    begin += room_of(buffer);
  }
}

void BufferBroadcast::send_from(int root) {
  const at::NoGradGuard no_grad;
  // The values of a forward pass that is still to be differentiated may be among them: no new versions.
  const at::AutoDispatchBelowADInplaceOrView unnoticed;
  if (!is_laid_out()) lay_out();
  const bool sends = communicator_.rank() == root;
  for (std::size_t i = 0; sends && i < buffers_.size(); ++i) places_[i].copy_(buffers_[i]);
  communicator_.broadcast(memory_, root).wait();
  for (std::size_t i = 0; !sends && i < buffers_.size(); ++i) buffers_[i].copy_(places_[i]);
}

}  // namespace hortator::parallel
