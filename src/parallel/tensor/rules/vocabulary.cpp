// Tokens: an embedding whose rows are divided, and losses of scores whose classes are. Scores are never gathered.

#include <ATen/ATen.h>
#include <ATen/core/Reduction.h>

#include <optional>
#include <utility>

#include "parallel/tensor/rules/rules.hpp"

namespace hortator::parallel::rules {
namespace {

/// Whole numbers as positions in this rank's part of a divided dimension.
struct OwnPositions {
  at::Tensor index;     ///< 0 where another rank has it
  at::Tensor is_other;  ///< where another rank has it
};

OwnPositions own_positions(const at::Tensor& numbers, std::int64_t part, const TensorRanks& ranks) {
  const auto own = numbers - part * ranks.index();
  auto is_other = own.lt(0).logical_or(own.ge(part));
  return {.index = own.masked_fill(is_other, 0), .is_other = std::move(is_other)};
}

/// The scores of the targets, [N, ..] from [N, classes, ..]; on other ranks than the owner's 0.
at::Tensor own_target_scores(const Operand& scores, const at::Tensor& target) {
  const auto dim = scores.division->dim;
  const auto [index, is_other] = own_positions(target, scores.tensor.size(dim), *scores.ranks);
  return scores.tensor.gather(dim, index.unsqueeze(dim)).squeeze(dim).masked_fill(is_other, 0);
}

/// The mean, sum or all of the losses of targets that are not ignored.
at::Tensor reduced(const at::Tensor& losses, const at::Tensor& is_ignored, std::int64_t reduction) {
  const auto counted = losses.masked_fill(is_ignored, 0);
  if (reduction == at::Reduction::None) return counted;
  if (reduction == at::Reduction::Sum) return counted.sum();
  return counted.sum() / is_ignored.logical_not().sum();
}

std::int64_t class_dim(const Operand& scores) { return scores.dims() == 1 ? 0 : 1; }

bool has_class_targets(const Operand& scores, const Operand& target) {
  return scores.is_divided_along(class_dim(scores)) && scores.division->blocks == 1 && !target.is_divided() &&
         !target.tensor.is_floating_point() && target.dims() == scores.dims() - 1;
}

}  // namespace

// embedding(weight, indices, padding_idx, scale_grad_by_freq, sparse)
bool embedding(OperatorCall& call) {
  const auto weight = call.operand(0), indices = call.operand(1);
  auto padding = call.integer(2);
  const bool scales = call.flag(3), is_sparse = call.flag(4);
  if (!weight.is_divided()) return false;
  if (weight.is_divided_along(1)) {
    call.give_divided(at::embedding(weight.tensor, indices.whole(), padding, scales, is_sparse),
                      {.dim = indices.dims(), .blocks = weight.division->blocks}, weight.ranks);
    return true;
  }
  if (scales || is_sparse || weight.division->blocks != 1) return false;
  const auto rows = weight.tensor.size(0), first = rows * weight.ranks->index();
  padding = padding >= first && padding < first + rows ? padding - first : -1;
  const auto [index, is_other] = own_positions(indices.whole(), rows, *weight.ranks);
  const auto own = at::embedding(weight.tensor, index, padding).masked_fill(is_other.unsqueeze(-1), 0);
  call.give(parallel::sum(own, weight.ranks));
  return true;
}

// cross_entropy_loss(self, target, weight, reduction, ignore_index, label_smoothing). Three numbers a row are summed
// over the ranks: exp() of the scores, the target's score, and with smoothing all scores.
bool cross_entropy(OperatorCall& call) {
  auto scores = call.operand(0);
  const auto target = call.operand(1);
  if (!has_class_targets(scores, target) || call.operand(2).tensor.defined()) return false;
  const auto dim = scores.division->dim;
  const auto type = scores.tensor.scalar_type();
  if (at::isReducedFloatingType(type)) scores.tensor = scores.tensor.to(at::kFloat);
  const auto smoothing = call.argument(5).toDouble();
  const auto is_ignored = target.tensor.eq(call.integer(4));
  scores.tensor = scores.tensor - scores.ranks->max(scores.tensor.detach().amax(dim, /*keepdim=*/true));
  std::vector<at::Tensor> addends = {scores.tensor.exp().sum(dim),
                                     own_target_scores(scores, target.tensor.masked_fill(is_ignored, 0))};
  if (smoothing > 0) addends.push_back(scores.tensor.sum(dim));
  const auto sums = parallel::sum(at::stack(addends), scores.ranks);
  const auto logarithm = sums[0].log();
  auto losses = logarithm - sums[1];
  if (smoothing > 0) {
    const auto classes = static_cast<double>(scores.whole_sizes()[static_cast<std::size_t>(dim)]);
    losses = losses * (1 - smoothing) + (logarithm - sums[2] / classes) * smoothing;
  }
  call.give(reduced(losses, is_ignored, call.integer(3)).to(type));
  return true;
}

// nll_loss_nd(self, target, weight, reduction, ignore_index), and nll_loss
bool nll_loss(OperatorCall& call) {
  const auto scores = call.operand(0), target = call.operand(1);
  if (!has_class_targets(scores, target) || call.operand(2).tensor.defined()) return false;
  const auto is_ignored = target.tensor.eq(call.integer(4));
  const auto losses = -parallel::sum(own_target_scores(scores, target.tensor.masked_fill(is_ignored, 0)), scores.ranks);
  call.give(reduced(losses, is_ignored, call.integer(3)));
  return true;
}

}  // namespace hortator::parallel::rules
