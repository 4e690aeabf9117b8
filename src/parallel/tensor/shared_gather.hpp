#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>

#include "parallel/tensor/conjugates.hpp"
#include "parallel/tensor/division.hpp"

/// Layers that share a divided input (queries, keys and values) gather it once in forward, and again, once, in
/// backward, so that between the two each rank keeps its part only.
namespace hortator::parallel {

/// The gather of backward, used by the layers that share the input.
class RepeatedGather {
 public:
  /// A layer whose columns get gradients.
  void add_user() { ++users_; }
  /// The whole tensor, gathered for the first user and released with the last. @collective
  at::Tensor take(const at::Tensor& part, const Division& division, const SharedRanks& ranks);

 private:
  at::Tensor whole_;
  int users_ = 0, taken_ = 0;
};

/// The gather of forward; an activation has one, which lives as long as it.
class SharedGather {
 public:
  /// gather() of the part, done at the first call for the part's present values. @collective
  const at::Tensor& whole(const at::Tensor& part, const Division& division, const SharedRanks& ranks);
  const std::shared_ptr<RepeatedGather>& repeated() const { return repeated_; }

 private:
  at::Tensor whole_;
  std::uint32_t version_ = 0;
  std::shared_ptr<RepeatedGather> repeated_;
};

/// matmul(whole, columns), where `whole` is that of `gather` and `part`: keeps the part for backward.
at::Tensor product_of_gathered(SharedGather& gather, const at::Tensor& part, const Division& division,
                               const SharedRanks& ranks, const at::Tensor& columns);

}  // namespace hortator::parallel
