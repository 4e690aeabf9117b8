#include "parallel/data_parallel/buffer_broadcast.hpp"

#include <ATen/core/LegacyTypeDispatch.h>
#include <c10/core/GradMode.h>

#include "parallel/data_parallel/alias.hpp"

namespace hortator::parallel {
namespace {

constexpr std::int64_t alignment = 16;  // the size of the largest element type, complex<double>

std::int64_t room_of(const at::Tensor& tensor) {
  return (tensor.numel() * static_cast<std::int64_t>(tensor.element_size()) + alignment - 1) / alignment * alignment;
}

}  // namespace

// False for the first pass, and when buffers were resized or converted.
bool BufferBroadcast::is_laid_out() const {
  if (packed_.size() != buffers_.size()) return false;
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    if (buffers_[i].sizes() != packed_[i].sizes() || buffers_[i].scalar_type() != packed_[i].scalar_type())
      return false;
  }
  return true;
}

void BufferBroadcast::lay_out() {
  std::int64_t bytes = 0;
  for (const auto& buffer : buffers_) bytes += room_of(buffer);
  memory_ = communicator_.allocate(bytes, at::kByte);
  packed_.clear();
  std::int64_t begin = 0;
  for (const auto& buffer : buffers_) {
    packed_.push_back(
        alias(memory_, begin / static_cast<std::int64_t>(buffer.element_size()), buffer, buffer.scalar_type()));
    begin += room_of(buffer);
  }
}

// @collective
void BufferBroadcast::broadcast_from(int root) {
  if (!is_laid_out()) lay_out();
  const bool sends = communicator_.rank() == root;
  for (std::size_t i = 0; sends && i < buffers_.size(); ++i) packed_[i].copy_(buffers_[i]);
  communicator_.broadcast(memory_, root).wait();
}

void BufferBroadcast::send_from(int root) {
  const at::NoGradGuard no_grad;
  // Backward may still need their values of the last forward pass, so their versions must not change.
  const at::AutoDispatchBelowADInplaceOrView unnoticed;
  broadcast_from(root);
  if (communicator_.rank() == root) return;
  for (std::size_t i = 0; i < buffers_.size(); ++i) buffers_[i].copy_(packed_[i]);
}

std::map<const void*, at::Tensor> BufferBroadcast::copies_from(int root) {
  const at::NoGradGuard no_grad;
  broadcast_from(root);
  std::map<const void*, at::Tensor> copies;
  for (std::size_t i = 0; i < buffers_.size(); ++i)
    copies.emplace(buffers_[i].unsafeGetTensorImpl(), packed_[i].clone());
  return copies;
}

}  // namespace hortator::parallel
