#include <ATen/ATen.h>

#include <hortator/error.hpp>
#include <hortator/training/metrics.hpp>

#include "core/text/text.hpp"

namespace hortator {
namespace {

void require_scores(const at::Tensor& scores, const at::Tensor& labels, std::int64_t rows) {
  const bool fits = scores.sizes() == labels.sizes() && (rows < 0 || (labels.dim() > 0 && rows <= labels.size(0)));
  if (!fits) {
    throw UsageError({.what = text::concat("Scores ", scores.sizes(), " and labels ", labels.sizes(),
                                           rows < 0 ? "" : text::concat(" (", rows, " rows count)"), " do not fit"),
                      .why = "each sample has one score and one label",
                      .hint = "of two logits a sample, give their difference"});
  }
}

}  // namespace

Auroc::Auroc() : scores_(at::empty({0}, at::kDouble)), positive_(at::empty({0}, at::kBool)) {}

void Auroc::add(const at::Tensor& scores, const at::Tensor& labels, std::int64_t rows) {
  require_scores(scores, labels, rows);
  const auto first = [&](const at::Tensor& all) {
    return (rows < 0 ? all : all.narrow(0, 0, rows)).reshape({-1}).cpu();
  };
  const auto truth = first(labels.detach());
  const auto counted = truth.ge(0);
  auto numbers = first(scores.detach()).to(at::kDouble).masked_select(counted);
  const auto known = truth.masked_select(counted);
  if (numbers.isnan().any().item<bool>())
    throw UsageError({.what = "A score is not a number", .hint = "look for the first loss that is not finite"});
  if (known.ne(0).logical_and(known.ne(1)).any().item<bool>())
    throw UsageError({.what = "A label is not 0 or 1", .hint = "compare each class with all others: labels.eq(k)"});
  new_scores_.push_back(std::move(numbers));
  new_positive_.push_back(known.ne(0));
}

void Auroc::merge(const Auroc& other) {
  other.join();
  new_scores_.push_back(other.scores_);
  new_positive_.push_back(other.positive_);
}

void Auroc::join() const {
  if (new_scores_.empty()) return;
  new_scores_.insert(new_scores_.begin(), scores_);
  new_positive_.insert(new_positive_.begin(), positive_);
  scores_ = at::cat(new_scores_);
  positive_ = at::cat(new_positive_);
  new_scores_.clear();
  new_positive_.clear();
}

std::int64_t Auroc::samples() const {
  join();
  return scores_.numel();
}

// By the sum of the positives' ranks, where equal scores share the mean of theirs.
double Auroc::value() const {
  join();
  const auto positives = positive_.sum().item<double>();
  const auto negatives = static_cast<double>(positive_.numel()) - positives;
  if (positives == 0 || negatives == 0) {
    throw UsageError({.what = text::concat("Of ", positive_.numel(), " samples, ", positives, " are positive"),
                      .why = "the area compares positive samples with negative ones",
                      .hint = "add samples of both classes"});
  }
  const auto [distinct, group, sizes] = at::_unique2(scores_, /*sorted=*/true, /*return_inverse=*/true,
                                                     /*return_counts=*/true);
  const auto counts = sizes.to(at::kDouble);
  const auto ranks = counts.cumsum(0) - (counts - 1) / 2;
  const auto sum = ranks.index_select(0, group).masked_select(positive_).sum().item<double>();
  return (sum - positives * (positives + 1) / 2) / (positives * negatives);
}

}  // namespace hortator
