#include "simulation/samples/feature_statistics.hpp"

#include <ATen/ops/full_like.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/logical_and.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/minimum.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>

#include <hortator/error.hpp>

#include "core/text/text.hpp"

namespace hortator::simulation {

namespace {

void require_features(const at::Tensor& batch, std::int64_t dim) {
  const auto from_front = dim < 0 ? dim + batch.dim() : dim;
  if (from_front >= 1 && from_front < batch.dim()) return;
  throw UsageError(
      {.what = text::concat("Samples of the shape ", batch.sizes(), " have no features in dimension ", dim),
       .why = "statistics are kept for each feature; dimension 0 counts samples",
       .hint = "set features_dim in the buffer's settings, or leave statistics out"});
}

}  // namespace

void FeatureStatistics::add(const at::Tensor& batch, std::int64_t dim) {
  require_features(batch, dim);
  if (batch.numel() == 0) return;
  const auto numbers = batch.detach().to(at::kCPU, at::kDouble).movedim(dim, 0).flatten(1);
  FeatureStatistics part;
  part.count_ = numbers.size(1);
  part.mean_ = numbers.mean(1);
  part.squares_ = (numbers - part.mean_.unsqueeze(1)).square().sum(1);
  part.min_ = numbers.amin(1);
  part.max_ = numbers.amax(1);
  merge(part);
}

// Chan, Golub and LeVeque: the variance of a union from those of its parts.
void FeatureStatistics::merge(const FeatureStatistics& other) {
  if (other.empty()) return;
  if (empty()) {
    *this = other;
    return;
  }
  if (other.mean_.numel() != mean_.numel()) {
    throw UsageError(
        {.what = text::concat("Samples with ", other.mean_.numel(), " features after samples with ", mean_.numel()),
         .hint = "use one buffer for each kind of samples"});
  }
  const auto total = static_cast<double>(count_ + other.count_);
  const auto weight = static_cast<double>(other.count_) / total;
  const auto difference = other.mean_ - mean_;
  squares_ = squares_ + other.squares_ + difference.square() * (static_cast<double>(count_) * weight);
  mean_ = mean_ + difference * weight;
  min_ = at::minimum(min_, other.min_);
  max_ = at::maximum(max_, other.max_);
  count_ += other.count_;
}

bool FeatureStatistics::is_finite() const {
  return empty() || mean_.isfinite().logical_and(squares_.isfinite()).all().item<bool>();
}

at::Tensor FeatureStatistics::deviation() const {
  const auto deviation = (squares_ / static_cast<double>(count_)).sqrt();
  // The mean of equal numbers is rounded: their deviation may be 1e-17 in place of 0.
  return at::where((max_ > min_) & (deviation > 0), deviation, at::ones_like(deviation));
}

at::Tensor FeatureStatistics::packed() const {
  if (empty()) return {};
  return at::stack({at::full_like(mean_, static_cast<double>(count_)), mean_, squares_, min_, max_});
}

FeatureStatistics FeatureStatistics::of_packed(const at::Tensor& packed) {
  FeatureStatistics statistics;
  if (!packed.defined()) return statistics;
  statistics.count_ = static_cast<std::int64_t>(packed[0][0].item<double>());
  statistics.mean_ = packed[1].clone();
  statistics.squares_ = packed[2].clone();
  statistics.min_ = packed[3].clone();
  statistics.max_ = packed[4].clone();
  return statistics;
}

}  // namespace hortator::simulation
