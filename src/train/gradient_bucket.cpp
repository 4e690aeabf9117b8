#include "train/gradient_bucket.hpp"

#include <ATen/ops/empty.h>
#include <c10/core/GradMode.h>

#include <utility>

namespace hortator::train {
namespace {

std::int64_t total_elements(const std::vector<at::Tensor>& tensors) {
  std::int64_t total = 0;
  for (const auto& tensor : tensors) total += tensor.numel();
  return total;
}

// Not narrow or view: Optimizer::zero_grad() detaches gradients in place, which LibTorch refuses for views.
at::Tensor alias(const at::Tensor& memory, std::int64_t offset, const at::Tensor& like) {
  auto place = at::empty({0}, memory.options());
  if (like.is_non_overlapping_and_dense()) {
    place.set_(memory.storage(), offset, like.sizes(), like.strides());
  } else {
    place.set_(memory.storage(), offset, like.sizes(),
               at::empty(like.sizes(), like.options().device(at::kMeta)).strides());
  }
  return place;
}

}  // namespace

GradientBucket::GradientBucket(comm::Communicator& communicator, std::vector<at::Tensor> parameters) {
  const at::NoGradGuard no_grad;
  const auto elements = total_elements(parameters);
  memory_ = communicator.allocate(elements + 1, parameters.front().scalar_type());
  memory_.zero_();
  mark_ = alias(memory_, elements, memory_.narrow(0, 0, 1));
  std::int64_t offset = 0;
  for (auto& parameter : parameters) {
    const auto place = alias(memory_, offset, parameter);
    offset += parameter.numel();
    slots_.push_back({.parameter = std::move(parameter), .place = place});
  }
}

void GradientBucket::fill(std::size_t i) {
  auto& slot = slots_[i];
  const auto& gradient = slot.parameter.grad();
  if (!gradient.is_same(slot.place)) slot.place.copy_(gradient.detach());
  mark_filled(slot);
}

void GradientBucket::fill_with_zero(std::size_t i) {
  slots_[i].place.zero_();
  mark_filled(slots_[i]);
}

void GradientBucket::mark_filled(Slot& slot) {
  if (!std::exchange(slot.filled, true)) ++filled_;
}

void GradientBucket::start(comm::Communicator& communicator) {
  started_ = true;
  work_ = communicator.all_reduce(memory_, comm::ReduceOp::mean);
}

void GradientBucket::finish() {
  work_.wait();
  for (auto& slot : slots_) slot.parameter.mutable_grad() = slot.place;
}

void GradientBucket::reset() {
  mark_.zero_();
  for (auto& slot : slots_) slot.filled = false;
  filled_ = 0;
  started_ = false;
}

}  // namespace hortator::train
