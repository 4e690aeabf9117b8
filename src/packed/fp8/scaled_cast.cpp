#include "packed/fp8/scaled_cast.hpp"

#include <ATen/ATen.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <cmath>

namespace hortator::packed {
namespace {

constexpr double smallest_amax = 1e-12;  // as torchao: of zeros

double largest_of(at::ScalarType type) { return type == at::kFloat8_e4m3fn ? 448 : 57344; }

}  // namespace

at::Tensor AmaxHistory::next(const at::Tensor& amax) {
  const auto length = options_.amax_history_length;
  if (steps_ == 0) amaxes_ = at::zeros({length}, amax.options());
  const auto before = options_.amax_most_recent ? amaxes_[(steps_ + length - 1) % length].clone() : amaxes_.max();
  const auto says_something = at::isfinite(amax).logical_and(amax > 0);
  const auto kept = options_.amax_most_recent ? before : at::zeros_like(amax);
  amaxes_[steps_ % length].copy_(at::where(says_something, amax, kept));
  ++steps_;
  return at::where(before > 0, before, amax);
}

ScaledTensor scaled(const at::Tensor& tensor, at::ScalarType type, std::int64_t margin, AmaxHistory* history) {
  const auto values = tensor.to(at::kFloat);
  auto amax = values.numel() == 0 ? at::zeros({}, values.options()) : values.abs().max();
  if (history != nullptr) amax = history->next(amax) * std::exp2(static_cast<double>(margin));
  const auto largest = largest_of(type);
  const auto factor = largest / amax.clamp_min(smallest_amax);
  return {.values = (values * factor).clamp(-largest, largest).to(type).contiguous(), .scale = factor.reciprocal()};
}

// On CPUs in float32: LibTorch computes with a loop of oneDNN there that is a thousand times slower where the processor
// has matrix tiles, and that some settings of oneDNN refuse.
at::Tensor product_with_transposed(const ScaledTensor& a, const ScaledTensor& b, at::ScalarType type) {
  if (a.values.is_cpu()) {
    const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
    const auto products = at::mm(a.values.to(at::kFloat), b.values.to(at::kFloat).t());
    return products.mul_(a.scale * b.scale).to(type);
  }
  return at::_scaled_mm(a.values, b.values.t(), a.scale, b.scale, {}, {}, type, /*use_fast_accum=*/false);
}

ScaledTensor transposed(const ScaledTensor& one) { return {.values = one.values.t().contiguous(), .scale = one.scale}; }

}  // namespace hortator::packed
