#include <ATen/ATen.h>

#include <cmath>
#include <hortator/error.hpp>
#include <hortator/training/metrics.hpp>

#include "core/text/text.hpp"

namespace hortator {

Perplexity::Perplexity() : sums_(at::zeros({2}, at::kDouble)) {}

void Perplexity::add(const at::Tensor& loss_sum, std::int64_t tokens) {
  if (loss_sum.numel() != 1 || tokens < 0)
    throw UsageError({.what = text::concat("A loss ", loss_sum.sizes(), " of ", tokens, " tokens cannot be added"),
                      .hint = "give the sum of the losses of these tokens, one number"});
  sums_ = sums_ + at::tensor({loss_sum.item<double>(), static_cast<double>(tokens)}, at::kDouble);
}

void Perplexity::add_logits(const at::Tensor& logits, const at::Tensor& targets) {
  const auto scores = logits.detach().reshape({-1, logits.size(-1)}).to(at::kFloat);
  const auto next = targets.reshape({-1});
  if (scores.size(0) != next.size(0))
    throw UsageError({.what = text::concat("Logits ", logits.sizes(), " do not fit targets ", targets.sizes())});
  const auto counted = next.ge(0);
  const auto losses = -at::log_softmax(scores, -1).gather(1, next.clamp_min(0).unsqueeze(1)).squeeze(1);
  const auto counted_losses = losses.to(at::kDouble).masked_fill(counted.logical_not(), 0);  // the others may be NaN
  sums_ = sums_ + at::stack({counted_losses.sum(), counted.sum().to(at::kDouble)}).cpu();
}

void Perplexity::merge(const Perplexity& other) { sums_ = sums_ + other.sums_; }

std::int64_t Perplexity::tokens() const { return static_cast<std::int64_t>(sums_[1].item<double>()); }

double Perplexity::mean_loss() const {
  const auto count = sums_[1].item<double>();
  if (count == 0) throw UsageError({.what = "No token has been counted, so there is no perplexity"});
  return sums_[0].item<double>() / count;
}

double Perplexity::value() const { return std::exp(mean_loss()); }

}  // namespace hortator
