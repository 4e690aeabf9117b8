#include "train/gradient_reducer.hpp"

#include <c10/core/GradMode.h>

#include <hortator/error.hpp>

#include "base/text.hpp"
#include "mpi/collectives.hpp"

namespace hortator::train {
namespace {

BucketItem item_of(const at::Tensor& parameter) {
  const int kind = static_cast<int>(parameter.scalar_type()) * 256 + parameter.device().index() + 1;
  return {.elements = parameter.numel(),
          .element_bytes = static_cast<std::int64_t>(parameter.element_size()),
          .kind = kind};
}

}  // namespace

GradientReducer::GradientReducer(std::vector<NamedParameter> parameters, comm::Communicator& communicator,
                                 const mpi::Communicator& host, const BucketLimits& limits)
    : parameters_(std::move(parameters)), communicator_(communicator), host_(host), places_(parameters_.size()) {
  // One rank: the average is the gradient itself, and neither hooks nor copies are worth their time.
  if (communicator_.size() == 1) return;
  std::vector<BucketItem> items;
  for (const auto& parameter : parameters_) items.push_back(item_of(parameter.tensor));
  for (const auto& indices : plan_buckets(items, limits)) {
    std::vector<at::Tensor> members;
    for (const int index : indices) {
      places_[static_cast<std::size_t>(index)] = {.bucket = buckets_.size(), .slot = members.size()};
      members.push_back(parameters_[static_cast<std::size_t>(index)].tensor);
    }
    buckets_.emplace_back(communicator_, std::move(members));
  }
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    hooks_.emplace_back(parameters_[i].tensor, [this, i] { on_gradient(i); });
  }
}

void GradientReducer::on_gradient(std::size_t parameter) {
  const at::NoGradGuard no_grad;
  const auto& [name, tensor] = parameters_[parameter];
  auto& bucket = buckets_[places_[parameter].bucket];
  if (tensor.grad().layout() != at::kStrided) {
    throw UsageError({.what = text::concat("the gradient of ", name, " is sparse"),
                      .why = "sparse gradients cannot be averaged over ranks",
                      .hint = "construct the embedding without sparse(true)"});
  }
  if (bucket.was_started()) {
    throw UsageError({.what = text::concat("backward reached ", name, " again after its gradient had been averaged"),
                      .why = "the second part would be missing on the other ranks",
                      .hint = "call accelerator.backward once for each backward pass"});
  }
  reached_ = true;
  bucket.fill(places_[parameter].slot);
  start_full_buckets();
}

// The last bucket waits for finish(): its mark tells the others whether this rank has all gradients.
void GradientReducer::start_full_buckets() {
  while (next_bucket_ + 1 < buckets_.size() && buckets_[next_bucket_].is_full())
    buckets_[next_bucket_++].start(communicator_);
}

void GradientReducer::finish() {
  if (!reached_) return;
  const at::NoGradGuard no_grad;
  std::vector<std::string> missing;
  fill_missing(missing);
  if (!missing.empty()) buckets_.back().raise_mark();
  while (next_bucket_ < buckets_.size()) buckets_[next_bucket_++].start(communicator_);
  for (auto& bucket : buckets_) bucket.finish();
  const bool somewhere_missing = buckets_.back().mark_was_raised();
  for (auto& bucket : buckets_) bucket.reset();
  next_bucket_ = 0;
  reached_ = false;
  if (somewhere_missing) throw_missing(missing);
}

void GradientReducer::fill_missing(std::vector<std::string>& missing) {
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    auto& bucket = buckets_[places_[i].bucket];
    if (bucket.has(places_[i].slot)) continue;
    bucket.fill_with_zero(places_[i].slot);
    missing.push_back(parameters_[i].name);
  }
}

void GradientReducer::throw_missing(const std::vector<std::string>& missing) const {
  const auto all = mpi::all_gather(host_, std::string_view(text::join(missing)));
  int rank = 0;
  while (all[static_cast<std::size_t>(rank)].empty()) ++rank;
  throw UsageError(
      {.what = text::concat("backward gave no gradient to ", all[static_cast<std::size_t>(rank)], " on rank ", rank),
       .why = "the ranks' gradients can only be averaged when every parameter has one on every rank",
       .hint = "use these parameters in the loss, or set requires_grad(false) on them before prepare"})
      .on_rank(rank);
}

}  // namespace hortator::train
