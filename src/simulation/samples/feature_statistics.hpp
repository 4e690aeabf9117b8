#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace hortator::simulation {

/// Count, mean, variance, minimum and maximum of each feature, over all samples so far. Equal for any order and
/// grouping of the samples, within rounding.
class FeatureStatistics {
 public:
  /// Takes in a batch, whose dimension `dim` counts features. Throws UsageError if their number has changed.
  void add(const at::Tensor& batch, std::int64_t dim);
  void merge(const FeatureStatistics& other);

  bool empty() const { return count_ == 0; }
  /// Whether all numbers so far were finite.
  bool is_finite() const;
  std::int64_t count() const { return count_; }  ///< numbers of each feature
  const at::Tensor& mean() const { return mean_; }
  at::Tensor deviation() const;  ///< of the whole; 1 where all numbers are equal
  const at::Tensor& min() const { return min_; }
  const at::Tensor& max() const { return max_; }

  /// The numbers as one tensor [5, features] of doubles, undefined if empty; and back.
  at::Tensor packed() const;
  static FeatureStatistics of_packed(const at::Tensor& packed);

 private:
  std::int64_t count_ = 0;
  at::Tensor mean_ = {};
  at::Tensor squares_ = {};  ///< sums of squared differences from the mean
  at::Tensor min_ = {};
  at::Tensor max_ = {};
};

}  // namespace hortator::simulation
