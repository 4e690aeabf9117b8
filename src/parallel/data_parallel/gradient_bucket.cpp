#include "parallel/data_parallel/gradient_bucket.hpp"

#include <ATen/ops/_foreach_copy.h>
#include <ATen/ops/_foreach_div.h>
#include <ATen/ops/div.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/sub.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>

#include <utility>

#include "core/range.hpp"
#include "parallel/data_parallel/alias.hpp"
#include "parallel/data_parallel/copy_gradient.hpp"

namespace hortator::parallel {
namespace {

// The next place for a gradient. Kernels for many tensors load vectors only if all of them are aligned, and a cache
// line holds the largest vectors.
std::int64_t aligned(std::int64_t offset, at::ScalarType type) {
  constexpr std::int64_t line_bytes = 64;
  const auto grain = line_bytes / static_cast<std::int64_t>(at::elementSize(type));
  return core::ceil_div(offset, grain) * grain;
}

std::int64_t total_elements(const std::vector<NamedParameter>& parameters, at::ScalarType type) {
  std::int64_t end = 0;
  for (const auto& parameter : parameters) end = aligned(end, type) + parameter.tensor.numel();
  return end;
}

}  // namespace

GradientBucket::GradientBucket(comm::Communicator& communicator, std::vector<NamedParameter> parameters,
                               const BucketFormat& format)
    : in_place_(format.travel_type == parameters.front().tensor.scalar_type()),
      divides_first_(format.travel_type == at::kHalf),
      ranks_(at::scalar_tensor(communicator.size())),
      hook_(format.hook != nullptr && *format.hook ? format.hook : nullptr),
      index_(format.index) {
  const at::NoGradGuard no_grad;
  const auto elements = total_elements(parameters, format.travel_type);
  memory_ = communicator.allocate(elements + format.signals, format.travel_type);
  memory_.zero_();
  signals_ = memory_.narrow(0, elements, format.signals);
  std::int64_t end = 0;
  for (auto& [name, parameter] : parameters) {
    const auto offset = aligned(end, format.travel_type);
    BucketSlot slot{.name = std::move(name),
                    .parameter = parameter,
                    .in_bucket = alias(memory_, offset, parameter, format.travel_type)};
    // The residual of this rank's part: the parameter may be divided.
    if (format.error_feedback && !in_place_)
      slot.residual = at::zeros_like(slot.in_bucket, slot.in_bucket.options().dtype(parameter.scalar_type()));
    end = offset + parameter.numel();
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
    encode();
  } else if (divides_first_) {
    memory_.div_(ranks_);
  }
}

// On devices one kernel for many tensors.
void GradientBucket::encode() {
  std::vector<at::Tensor> targets;
  std::vector<at::Tensor> gradients;
  for (auto& slot : slots_) {
    const auto& gradient = slot.parameter.grad();
    if (!gradient.defined()) {
      slot.in_bucket.zero_();
    } else if (slot.residual.defined() && slot.state == SlotState::filled) {
      encode_with_residual(slot);
    } else if (divides_first_ && gradient.is_cpu()) {
      at::div_out(slot.in_bucket, gradient.detach(), ranks_);
    } else {
      targets.push_back(slot.in_bucket);
      gradients.push_back(gradient.detach());
    }
  }
  if (targets.empty()) return;
  if (divides_first_) gradients = at::_foreach_div(gradients, ranks_.item());
  at::_foreach_copy_(targets, gradients);
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
  if (hook_ != nullptr) return run_hook(communicator);
  work_ = communicator.all_reduce(memory_, divides_first_ ? comm::ReduceOp::sum : comm::ReduceOp::mean);
}

// The signals behind the gradients travel on their own. @collective
void GradientBucket::run_hook(comm::Communicator& communicator) {
  const auto row = memory_.narrow(0, 0, memory_.numel() - signals_.numel());
  BucketExchange exchange{
      .gradients = row,
      .index = index_,
      .rank = communicator.rank(),
      .ranks = communicator.size(),
      .sum = [&](at::Tensor tensor) { communicator.all_reduce(std::move(tensor), comm::ReduceOp::sum).wait(); },
      .gather =
          [&](const at::Tensor& tensor) {
            auto sizes = tensor.sizes().vec();
            sizes.insert(sizes.begin(), communicator.size());
            auto rows = at::empty(sizes, tensor.options());
            communicator.all_gather(rows, tensor.contiguous()).wait();
            return rows;
          }};
  for (const auto& slot : slots_) exchange.parts.push_back({.name = slot.name, .gradient = slot.in_bucket});
  (*hook_)(exchange);
  if (!exchange.gradients.is_same(row)) row.copy_(exchange.gradients);
  if (signals_.numel() > 0) communicator.all_reduce(signals_, comm::ReduceOp::mean).wait();
}

void GradientBucket::publish(std::size_t i) {
  auto& slot = slots_[i];
  auto& gradient = slot.parameter.mutable_grad();
  if (in_place_) {
    if (!gradient.is_same(slot.in_bucket)) gradient = slot.in_bucket;
    return;
  }
  if (!gradient.defined()) gradient = at::empty_like(slot.parameter.detach());
  averages_.push_back(slot.in_bucket);
  gradients_.push_back(gradient.detach());
}

void GradientBucket::decode() {
  if (!gradients_.empty()) at::_foreach_copy_(gradients_, averages_);
  gradients_.clear();
  averages_.clear();
}

void GradientBucket::keep(std::size_t i) {
  auto& slot = slots_[i];
  if (slot.kept.defined()) slot.in_bucket.copy_(slot.kept);
}

void GradientBucket::release() {
  for (auto& slot : slots_) {
    auto& gradient = slot.parameter.mutable_grad();
    if (gradient.defined() && gradient.is_same(slot.in_bucket)) gradient.reset();
  }
}

void GradientBucket::reset() {
  decode();
  signals_.zero_();
  for (auto& slot : slots_) {
    slot.state = SlotState::empty;
    slot.kept.reset();
  }
  filled_ = 0;
  started_ = false;
}

}  // namespace hortator::parallel
