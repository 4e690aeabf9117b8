#include "step/gradients/sharded_norm.hpp"

#include <ATen/ops/full.h>
#include <ATen/ops/linalg_vector_norm.h>
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

/// The norm of this rank's slices in fp64; the neutral value if it has none.
at::Tensor own_norm(const GradientHolders& holders, double norm_type) {
  const auto options = holders.shards.front().options().dtype(at::kDouble).requires_grad(false);
  const auto groups = gradient_groups(holders.shards);
  if (groups.empty()) return at::full({}, norm_type < 0 ? std::numeric_limits<double>::infinity() : 0.0, options);
  return total_norm(groups, norm_type).to(options);
}

// @collective
at::Tensor norm_of_shards(const GradientHolders& holders, double norm_type, comm::Communicator& group) {
  auto norm = own_norm(holders, norm_type);
  if (std::isinf(norm_type)) {
    group.all_reduce(norm, norm_type > 0 ? comm::ReduceOp::max : comm::ReduceOp::min).wait();
    return norm;
  }
  if (norm_type != 0) norm.pow_(norm_type);
  group.all_reduce(norm, comm::ReduceOp::sum).wait();
  return norm_type != 0 ? norm.pow(1 / norm_type) : norm;
}

}  // namespace

std::vector<at::Tensor> GradientHolders::all() const {
  auto all = whole;
  all.insert(all.end(), shards.begin(), shards.end());
  return all;
}

at::Tensor total_norm(const GradientHolders& holders, double norm_type, comm::Communicator& group) {
  if (holders.shards.empty()) return total_norm(gradient_groups(holders.whole), norm_type);
  auto norm = norm_of_shards(holders, norm_type, group);
  if (const auto groups = gradient_groups(holders.whole); !groups.empty())
    norm = at::linalg_vector_norm(at::stack({norm, total_norm(groups, norm_type).to(norm.options())}), norm_type);
  return norm.to(has_double(holders.all()) ? at::kDouble : at::kFloat);
}

}  // namespace hortator::step
