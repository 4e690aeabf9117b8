// Losses of scores whose classes are divided. Scores are never gathered.

#include <ATen/ATen.h>
#include <ATen/OpMathType.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/Reduction.h>

#include <utility>
#include <vector>

#include "parallel/tensor/rules/class_numbers.hpp"
#include "parallel/tensor/rules/rules.hpp"

namespace hortator::parallel::rules {
namespace {

/// The scores of the targets, [N, ..] from [N, classes, ..]; on other ranks than the owner's 0. A part has `part`
/// classes.
at::Tensor own_target_scores(const Operand& scores, const at::Tensor& target, std::int64_t part) {
  const auto dim = scores.division->dim;
  const auto [index, is_other] = own_positions(target, part, *scores.ranks);
  return scores.tensor.gather(dim, index.unsqueeze(dim)).squeeze(dim).masked_fill(is_other, 0);
}

/// The targets, checked, with class 0 for those that are ignored.
at::Tensor checked_classes(const at::Tensor& target, const at::Tensor& is_ignored, const Operand& scores) {
  auto classes = target.masked_fill(is_ignored, 0);
  require_below(classes, scores.whole_sizes()[static_cast<std::size_t>(scores.division->dim)], "a loss of classes");
  return classes;
}

/// The scores of this rank's classes, without padding.
at::Tensor own_classes_of(const Operand& scores) {
  const auto dim = scores.division->dim, part = scores.tensor.size(dim);
  const auto own = without_padding(part, *scores.division, scores.ranks->index(), scores.ranks->size());
  return own == part ? scores.tensor : scores.tensor.narrow(dim, 0, own);
}

/// That of the scores; under autocast, as LibTorch's own losses, float32.
at::ScalarType loss_type(const at::Tensor& scores) {
  const bool is_autocast = at::autocast::is_autocast_enabled(scores.device().type());
  return is_autocast && at::isReducedFloatingType(scores.scalar_type()) ? at::kFloat : scores.scalar_type();
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

// cross_entropy_loss(self, target, weight, reduction, ignore_index, label_smoothing). Three numbers a row are summed
// over the ranks: exp() of the scores, the target's score, and with smoothing all scores.
bool cross_entropy(OperatorCall& call) {
  auto scores = call.operand(0);
  const auto target = call.operand(1);
  if (!has_class_targets(scores, target) || call.operand(2).tensor.defined()) return false;
  const auto dim = scores.division->dim;
  const auto type = loss_type(scores.tensor);
  const auto is_ignored = target.tensor.eq(call.integer(4));
  const auto classes = checked_classes(target.tensor, is_ignored, scores);
  const auto part = scores.tensor.size(dim), count = scores.whole_sizes()[static_cast<std::size_t>(dim)];
  scores.tensor = own_classes_of(scores).to(at::toOpMathType(type));
  const auto smoothing = call.argument(5).toDouble();
  scores.tensor = scores.tensor - scores.ranks->max(scores.tensor.detach().amax(dim, /*keepdim=*/true));
  std::vector<at::Tensor> addends = {scores.tensor.exp().sum(dim), own_target_scores(scores, classes, part)};
  if (smoothing > 0) addends.push_back(scores.tensor.sum(dim));
  const auto sums = parallel::sum(at::stack(addends), scores.ranks);
  const auto logarithm = sums[0].log();
  auto losses = logarithm - sums[1];
  if (smoothing > 0) {
    losses = losses * (1 - smoothing) + (logarithm - sums[2] / static_cast<double>(count)) * smoothing;
  }
  call.give(reduced(losses, is_ignored, call.integer(3)).to(type));
  return true;
}

// nll_loss_nd(self, target, weight, reduction, ignore_index), and nll_loss
bool nll_loss(OperatorCall& call) {
  auto scores = call.operand(0);
  const auto target = call.operand(1);
  if (!has_class_targets(scores, target) || call.operand(2).tensor.defined()) return false;
  const auto is_ignored = target.tensor.eq(call.integer(4));
  const auto classes = checked_classes(target.tensor, is_ignored, scores);
  scores.tensor = scores.tensor.to(loss_type(scores.tensor));
  const auto part = scores.tensor.size(scores.division->dim);
  const auto losses = -parallel::sum(own_target_scores(scores, classes, part), scores.ranks);
  call.give(reduced(losses, is_ignored, call.integer(3)));
  return true;
}

}  // namespace hortator::parallel::rules
