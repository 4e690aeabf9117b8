#include "step/gradients/sharded_norm.hpp"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/minimum.h>
#include <ATen/ops/stack.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "step/gradients/clip.hpp"

namespace hortator::step {
namespace {

bool has_double(const std::vector<at::Tensor>& tensors) {
  return std::any_of(tensors.begin(), tensors.end(),
                     [](const at::Tensor& one) { return one.scalar_type() == at::kDouble; });
}

/// Norms in a form in which those of several tensors and ranks can be put together: powers, or the norms themselves
/// where they are the largest or smallest number. In fp64.
class NormSum {
 public:
  NormSum(double norm_type, const at::TensorOptions& options)
      : norm_type_(norm_type), options_(options.dtype(at::kDouble).requires_grad(false)) {}

  /// The norm of this rank's gradients; the neutral value if it has none.
  at::Tensor of(const std::vector<at::Tensor>& holders) const {
    const auto groups = gradient_groups(holders);
    if (groups.empty()) return at::full({}, norm_type_ < 0 ? std::numeric_limits<double>::infinity() : 0.0, options_);
    return contribution(total_norm(groups, norm_type_));
  }
  at::Tensor contribution(const at::Tensor& norm) const {
    const auto exact = norm.to(options_, /*non_blocking=*/false, /*copy=*/true);
    return adds() && norm_type_ != 0 ? exact.pow(norm_type_) : exact;
  }
  at::Tensor together(const at::Tensor& a, const at::Tensor& b) const {
    if (adds()) return a + b;
    return norm_type_ > 0 ? at::maximum(a, b) : at::minimum(a, b);
  }
  /// @collective
  void reduce(const at::Tensor& sum, comm::Communicator& ranks) const {
    const auto extreme = norm_type_ > 0 ? comm::ReduceOp::max : comm::ReduceOp::min;
    ranks.all_reduce(sum, adds() ? comm::ReduceOp::sum : extreme).wait();
  }
  at::Tensor norm(const at::Tensor& sum) const { return adds() && norm_type_ != 0 ? sum.pow(1 / norm_type_) : sum; }

 private:
  bool adds() const { return !std::isinf(norm_type_); }

  double norm_type_;
  at::TensorOptions options_;
};

/// What this rank's holders contribute: a number each, or one for each of several parameters.
struct Contributions {
  at::Tensor shards, parts, shards_of_parts;
};

// Slices of parts are reduced along both axes, others along the one on which ranks differ. Kinds without
// holders are not reduced. @collective
at::Tensor over_ranks(Contributions of, const GradientHolders& holders, const NormSum& sums, const NormRanks& ranks) {
  if (!holders.shards_of_parts.empty() && ranks.shards_of_parts == nullptr) {
    const auto both = at::stack({of.shards, of.shards_of_parts});
    sums.reduce(both, *ranks.shards);
    of.shards = both[0];
    of.parts = sums.together(of.parts, both[1]);
  } else {
    if (!holders.shards.empty()) sums.reduce(of.shards, *ranks.shards);
    if (!holders.shards_of_parts.empty()) {
      sums.reduce(of.shards_of_parts, *ranks.shards_of_parts);
      of.parts = sums.together(of.parts, of.shards_of_parts);
    }
  }
  if (!holders.parts.empty() || !holders.shards_of_parts.empty()) sums.reduce(of.parts, *ranks.parts);
  return sums.together(of.shards, of.parts);
}

// @collective
at::Tensor norm_over_ranks(const GradientHolders& holders, double norm_type, const NormRanks& ranks) {
  const NormSum sums(norm_type, holders.all().front().options());
  return sums.norm(over_ranks({.shards = sums.of(holders.shards),
                               .parts = sums.of(holders.parts),
                               .shards_of_parts = sums.of(holders.shards_of_parts)},
                              holders, sums, ranks));
}

/// The holders of all parameters, of one kind each.
GradientHolders together(const std::vector<GradientHolders>& each) {
  GradientHolders all;
  for (const auto& one : each) {
    for (const auto kind : {&GradientHolders::whole, &GradientHolders::shards, &GradientHolders::parts,
                            &GradientHolders::shards_of_parts})
      (all.*kind).insert((all.*kind).end(), (one.*kind).begin(), (one.*kind).end());
  }
  return all;
}

}  // namespace

std::vector<at::Tensor> GradientHolders::all() const {
  auto all = whole;
  for (const auto* more : {&shards, &parts, &shards_of_parts}) all.insert(all.end(), more->begin(), more->end());
  return all;
}

namespace {

// The norm of this rank's stages. @collective unless all are whole
at::Tensor norm_of_stage(const GradientHolders& holders, double norm_type, const NormRanks& ranks) {
  if (holders.are_whole()) return total_norm(gradient_groups(holders.whole), norm_type);
  auto norm = norm_over_ranks(holders, norm_type, ranks);
  if (const auto groups = gradient_groups(holders.whole); !groups.empty())
    norm = at::linalg_vector_norm(at::stack({norm, total_norm(groups, norm_type).to(norm.options())}), norm_type);
  return norm.to(has_double(holders.all()) ? at::kDouble : at::kFloat);
}

}  // namespace

at::Tensor total_norm(const GradientHolders& holders, double norm_type, const NormRanks& ranks) {
  const auto norm = norm_of_stage(holders, norm_type, ranks);
  if (ranks.stages == nullptr) return norm;
  const NormSum sums(norm_type, at::TensorOptions().device(ranks.device));  // also of a stage without gradients
  const auto sum = sums.contribution(norm);
  sums.reduce(sum, *ranks.stages);
  return sums.norm(sum).to(norm.scalar_type());
}

at::Tensor norm_of_each(const std::vector<GradientHolders>& each, double norm_type, const NormRanks& ranks) {
  if (each.empty()) return at::empty({0}, at::kDouble);
  const auto holders = together(each);
  const auto all = holders.all();  // none in a stage without parameters that learn
  const NormSum sums(norm_type, all.empty() ? at::TensorOptions().device(ranks.device) : all.front().options());
  const auto contributions = [&](auto kind) {
    std::vector<at::Tensor> numbers;
    for (const auto& one : each) numbers.push_back(sums.of(one.*kind));
    return at::stack(numbers);
  };
  const auto others = over_ranks({.shards = contributions(&GradientHolders::shards),
                                  .parts = contributions(&GradientHolders::parts),
                                  .shards_of_parts = contributions(&GradientHolders::shards_of_parts)},
                                 holders, sums, ranks);
  const auto of_stage = sums.together(others, contributions(&GradientHolders::whole));
  if (ranks.stages != nullptr) sums.reduce(of_stage, *ranks.stages);
  return sums.norm(of_stage);
}

}  // namespace hortator::step
