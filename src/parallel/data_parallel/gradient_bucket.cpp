#include "parallel/data_parallel/gradient_bucket.hpp"

#include <ATen/ops/div.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/sub.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>

#include <utility>

#include "parallel/data_parallel/alias.hpp"
#include "parallel/data_parallel/copy_gradient.hpp"

namespace hortator::parallel {
namespace {

std::int64_t total_elements(const std::vector<at::Tensor>& tensors) {
  std::int64_t total = 0;
  for (const auto& tensor : tensors) total += tensor.numel();
  return total;
}

}  // namespace

GradientBucket::GradientBucket(comm::Communicator& communicator, std::vector<at::Tensor> parameters,
                               const BucketFormat& format)
    : in_place_(format.travel_type == parameters.front().scalar_type()),
      divides_first_(format.travel_type == at::kHalf),
      ranks_(at::scalar_tensor(communicator.size())) {
  const at::NoGradGuard no_grad;
  const auto elements = total_elements(parameters);
  memory_ = communicator.allocate(elements + format.signals, format.travel_type);
  memory_.zero_();
  signals_ = memory_.narrow(0, elements, format.signals);
  std::int64_t offset = 0;
  for (auto& parameter : parameters) {
    BucketSlot slot{.parameter = parameter, .in_bucket = alias(memory_, offset, parameter, format.travel_type)};
    if (format.error_feedback && !in_place_) slot.residual = at::zeros_like(parameter);
    offset += parameter.numel();
    slots_.push_back(std::move(slot));
  }
}

void GradientBucket::set_state(BucketSlot& slot, SlotState state) {
  if (slot.state == SlotState::empty) ++filled_;
  slot.state = state;
}

void GradientBucket::fill(std::size_t i) {
  auto& slot = slots_[i];
  set_state(slot, SlotState::filled);
  if (!in_place_ || slot.parameter.grad().is_same(slot.in_bucket)) return;
  copy_gradient(slot.in_bucket, slot.parameter.grad());
  // Immediately: the next gradients can reuse the gradient's own memory.
  slot.parameter.mutable_grad() = slot.in_bucket;
}

void GradientBucket::fill_unused(std::size_t i) {
  auto& slot = slots_[i];
  set_state(slot, SlotState::unused);
  if (!in_place_) return;
  const auto& gradient = slot.parameter.grad();
  if (!gradient.defined()) {
    slot.in_bucket.zero_();
  } else if (gradient.is_same(slot.in_bucket)) {
    slot.kept = slot.in_bucket.clone();
  } else {
    slot.in_bucket.copy_(gradient.detach());
  }
}

void GradientBucket::fill_with_zeros() {
  memory_.zero_();
  for (auto& slot : slots_) set_state(slot, SlotState::unused);
}

void GradientBucket::set_signals(const std::vector<float>& message) {
  signals_.copy_(at::from_blob(const_cast<float*>(message.data()), {signals_.numel()}, at::kFloat));
}

std::vector<float> GradientBucket::signals() const {
  const auto message = signals_.to(at::kFloat).contiguous();
  return {message.data_ptr<float>(), message.data_ptr<float>() + message.numel()};
}

void GradientBucket::pack() {
  if (!in_place_) {
    for (auto& slot : slots_) encode(slot);
  } else if (divides_first_) {
    memory_.div_(ranks_);
  }
}

void GradientBucket::encode(BucketSlot& slot) {
  const auto& gradient = slot.parameter.grad();
  if (!gradient.defined()) {
    slot.in_bucket.zero_();
  } else if (slot.residual.defined() && slot.state == SlotState::filled) {
    encode_with_residual(slot);
  } else if (divides_first_) {
    at::div_out(slot.in_bucket, gradient.detach(), ranks_);
  } else {
    slot.in_bucket.copy_(gradient.detach());
  }
}

void GradientBucket::encode_with_residual(BucketSlot& slot) {
  const auto gradient = slot.parameter.grad().detach();
  const auto exact = divides_first_ ? gradient / ranks_ + slot.residual : gradient + slot.residual;
  slot.in_bucket.copy_(exact);
  at::sub_out(slot.residual, exact, slot.in_bucket.to(exact.scalar_type()));
  // This pass's gradient shows an overflow; carried over, it would spoil all later ones.
  slot.residual.nan_to_num_(0, 0, 0);
}

void GradientBucket::start(comm::Communicator& communicator) {
  started_ = true;
  work_ = communicator.all_reduce(memory_, divides_first_ ? comm::ReduceOp::sum : comm::ReduceOp::mean);
}

void GradientBucket::publish(std::size_t i) {
  auto& slot = slots_[i];
  auto& gradient = slot.parameter.mutable_grad();
  if (in_place_) {
    if (!gradient.is_same(slot.in_bucket)) gradient = slot.in_bucket;
    return;
  }
  if (!gradient.defined()) gradient = at::empty_like(slot.parameter.detach());
  gradient.detach().copy_(slot.in_bucket);
}

void GradientBucket::keep(std::size_t i) {
  auto& slot = slots_[i];
  if (slot.kept.defined()) slot.in_bucket.copy_(slot.kept);
}

void GradientBucket::reset() {
  signals_.zero_();
  for (auto& slot : slots_) {
    slot.state = SlotState::empty;
    slot.kept.reset();
  }
  filled_ = 0;
  started_ = false;
}

}  // namespace hortator::parallel
