#include "tools/checkpoint/difference.hpp"

#include <ATen/Functions.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <set>

namespace hortator::tools::checkpoints {
namespace {

constexpr std::int64_t elements_at_once = std::int64_t{1} << 20;  // fits into a cache as doubles

bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  return a.scalar_type() == b.scalar_type() && std::memcmp(a.const_data_ptr(), b.const_data_ptr(), a.nbytes()) == 0;
}

at::Tensor as_doubles(const at::Tensor& flat) {
  if (flat.scalar_type() == at::ScalarType::Float4_e2m1fn_x2) return flat.view(at::kByte).to(at::kDouble);
  // 8-bit types are converted by way of float: not all convert to double directly.
  return flat.is_floating_point() && flat.element_size() == 1 ? flat.to(at::kFloat).to(at::kDouble)
                                                              : flat.to(at::kDouble);
}

/// Real and imaginary parts, side by side.
at::Tensor as_pairs(const at::Tensor& flat) {
  return at::view_as_real(flat.is_complex() ? flat.to(at::kComplexDouble) : as_doubles(flat).to(at::kComplexDouble));
}

/// Absolute difference of each pair of elements of two flat tensors.
at::Tensor distances(const at::Tensor& a, const at::Tensor& b) {
  const bool are_pairs = a.is_complex() || b.is_complex();
  const auto left = are_pairs ? as_pairs(a) : as_doubles(a);
  const auto right = are_pairs ? as_pairs(b) : as_doubles(b);
  const auto odd = at::isnan(left).logical_xor(at::isnan(right));
  const auto equal = left.eq(right).logical_or(at::isnan(left).logical_and(at::isnan(right)));
  auto apart = (left - right).abs();
  apart.masked_fill_(equal, 0);
  apart.masked_fill_(odd, std::numeric_limits<double>::infinity());
  return are_pairs ? apart.amax(-1) : apart;  // a complex element differs if one of its parts does
}

}  // namespace

Difference difference(const at::Tensor& a, const at::Tensor& b, double tolerance) {
  const auto left = a.contiguous().view({-1});
  const auto right = b.contiguous().view({-1});
  Difference found;
  for (std::int64_t begin = 0; begin < left.numel(); begin += elements_at_once) {
    const auto count = std::min(elements_at_once, left.numel() - begin);
    const auto one = left.narrow(0, begin, count);
    const auto other = right.narrow(0, begin, count);
    if (same_bits(one, other)) continue;
    const auto apart = distances(one, other);
    const auto beyond = apart.gt(tolerance);
    found.elements += beyond.sum().item<std::int64_t>();
    found.largest = std::max(found.largest, apart.max().item<double>());
  }
  if (found.elements == 0) found.largest = 0;
  return found;
}

NameComparison compare_names(const weights::WeightSource& a, const weights::WeightSource& b) {
  const std::set<std::string> in_a(a.names().begin(), a.names().end());
  const std::set<std::string> in_b(b.names().begin(), b.names().end());
  NameComparison found;
  for (const auto& name : b.names()) {
    if (!in_a.contains(name)) found.only_in_b.push_back(name);
  }
  for (const auto& name : a.names()) {
    if (!in_b.contains(name)) {
      found.only_in_a.push_back(name);
      continue;
    }
    const auto left = a.spec(name);
    const auto right = b.spec(name);
    if (left.shape != right.shape) {
      found.other_shape.push_back(name);
      continue;
    }
    if (left.type != right.type) found.other_type.push_back(name);
    found.comparable.push_back(name);
  }
  return found;
}

}  // namespace hortator::tools::checkpoints
