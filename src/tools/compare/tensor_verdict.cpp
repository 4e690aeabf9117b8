#include "tools/compare/tensor_verdict.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <string_view>
#include <utility>

namespace hortator::tools {
namespace {

using observe::TensorRecord;

/// Half a unit in the last place of 1.
double rounding_of(std::string_view type) {
  constexpr auto known = std::to_array<std::pair<std::string_view, int>>(
      {{"Float", -24}, {"Double", -53}, {"Half", -11}, {"BFloat16", -8}});
  const auto* const found = std::ranges::find(known, type, [](const auto& entry) { return entry.first; });
  return found == known.end() ? 0 : std::ldexp(1.0, found->second);
}

// False if one is NaN: nothing is known of how far they are apart.
bool is_near(double a, double b, double tolerance) { return std::abs(a - b) <= tolerance; }

/// A tensor over all ranks that have it.
struct Total {
  double count = 0;
  std::uint64_t elements = 0;
  double sum = 0;
  double norm = 0;

  explicit Total(const RankTensors& tensors) {
    for (const auto* tensor : tensors) {
      count += static_cast<double>(tensor->count());
      elements += tensor->elements;
      sum += tensor->sum;
      norm += tensor->norm;
    }
  }
};

double tolerance_of(const TensorRecord& a, const TensorRecord& b, double units) {
  return units * std::max(rounding_of(a.type), rounding_of(b.type));
}

bool all_equal(const RankTensors& a, const RankTensors& b) {
  const auto& first = *a.front();
  const auto is_same = [&](const TensorRecord* one) { return one->bits == first.bits && one->sizes == first.sizes; };
  return std::ranges::all_of(a, is_same) && std::ranges::all_of(b, is_same);
}

/// Whether ranks have different tensors of one size.
bool are_apart(const RankTensors& tensors) {
  return std::ranges::any_of(tensors, [&](const auto* one) { return one->bits != tensors.front()->bits; });
}

}  // namespace

std::string_view to_string(TensorVerdict verdict) {
  switch (verdict) {
    case TensorVerdict::equal:
      return "are equal";
    case TensorVerdict::parts_of_sum:
      return "are terms of sums that agree within rounding";
    case TensorVerdict::unrelated:
      return "cannot be compared, since they are of other parts";
    case TensorVerdict::order:
      return "are the same elements in another order";
    case TensorVerdict::bits:
      return "differ within rounding";
    case TensorVerdict::more:
      return "differ by more than rounding";
  }
  return "";
}

bool may_be_parts(const TensorRecord& a, const TensorRecord& b) {
  const auto divides = [](auto part, auto whole) { return part == whole || (part > 0 && whole % part == 0); };
  return std::ranges::equal(a.sizes, b.sizes, divides) || std::ranges::equal(b.sizes, a.sizes, divides);
}

TensorVerdict compare_same(const TensorRecord& a, const TensorRecord& b, double units) {
  if (a.sizes != b.sizes) return compare_parts({&a}, {&b}, units);
  if (a.type == b.type && a.bits == b.bits) return TensorVerdict::equal;
  if (a.type == b.type && a.elements == b.elements) return TensorVerdict::order;
  const double relative = tolerance_of(a, b, units);
  if (relative == 0) return TensorVerdict::more;  // whole numbers are not rounded
  const double tolerance = relative * std::max(a.norm, b.norm);
  return is_near(a.sum, b.sum, tolerance) && is_near(a.norm, b.norm, tolerance) ? TensorVerdict::bits
                                                                                : TensorVerdict::more;
}

// If one run has each element twice, for example since two ranks have the whole tensor, its sums are twice as large.
TensorVerdict compare_parts(const RankTensors& a, const RankTensors& b, double units) {
  if (all_equal(a, b)) return TensorVerdict::equal;
  const Total of_a(a);
  const Total of_b(b);
  const auto in_a = static_cast<std::uint64_t>(of_a.count);
  const auto in_b = static_cast<std::uint64_t>(of_b.count);
  if (in_a == 0 || in_b == 0) return in_a == in_b ? TensorVerdict::equal : TensorVerdict::unrelated;
  const auto common = std::gcd(in_a, in_b);
  if (a.front()->type == b.front()->type && of_a.elements * (in_b / common) == of_b.elements * (in_a / common))
    return TensorVerdict::equal;
  const double scale = of_a.count / of_b.count;
  const double norm = std::max(of_a.norm, of_b.norm * scale);
  const double tolerance = tolerance_of(*a.front(), *b.front(), units) * norm;
  const bool means_agree = is_near(of_a.sum, of_b.sum * scale, tolerance);
  if (means_agree && is_near(of_a.norm, of_b.norm * scale, tolerance)) return TensorVerdict::bits;
  const bool may_be_terms = a.front()->sizes == b.front()->sizes && (are_apart(a) || are_apart(b));
  if (may_be_terms && (means_agree || is_near(of_a.sum, of_b.sum, tolerance))) return TensorVerdict::parts_of_sum;
  return may_be_terms || !may_be_parts(*a.front(), *b.front()) ? TensorVerdict::unrelated : TensorVerdict::more;
}

}  // namespace hortator::tools
