#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "weights/weight_source.hpp"

namespace hortator::tools::checkpoints {

/// How the values of two tensors of one shape differ.
struct Difference {
  double largest = 0;         ///< between two elements; infinite if exactly one of them is NaN
  std::int64_t elements = 0;  ///< number of elements that differ
};

/// Compares values, not bits, of any types. Values that differ by at most `tolerance` are equal, and so are two NaNs.
Difference difference(const at::Tensor& a, const at::Tensor& b, double tolerance);

/// The differences that show without reading elements.
struct NameComparison {
  std::vector<std::string> only_in_a = {};
  std::vector<std::string> only_in_b = {};
  std::vector<std::string> other_shape = {};
  std::vector<std::string> other_type = {};  ///< of the same shape: their values can be compared
  std::vector<std::string> comparable = {};  ///< those, and all with equal shape and type
};
NameComparison compare_names(const weights::WeightSource& a, const weights::WeightSource& b);

}  // namespace hortator::tools::checkpoints
