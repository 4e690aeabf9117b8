#include <ATen/ATen.h>

#include <algorithm>
#include <hortator/error.hpp>
#include <hortator/training/metrics.hpp>

#include "core/text/text.hpp"

namespace hortator {

MovingMean::MovingMean(std::int64_t window)
    : window_(window), numbers_(at::empty({0}, at::kDouble)), added_(at::zeros({}, at::kLong)) {
  if (window >= 1) return;
  throw UsageError({.what = text::concat("A moving mean over ", window, " numbers"),
                    .why = "its window holds the last numbers",
                    .hint = "use 1 or more"});
}

void MovingMean::add(double number) { add(at::full({}, number, at::kDouble)); }

void MovingMean::add(const at::Tensor& number) {
  if (number.numel() != 1) {
    throw UsageError({.what = text::concat("A moving mean got a tensor ", number.sizes()),
                      .why = "it is a mean of single numbers",
                      .hint = "add its mean()"});
  }
  if (numbers_.numel() == 0) numbers_ = at::zeros({window_}, number.options().dtype(at::kDouble).requires_grad(false));
  const auto added = added_.item<std::int64_t>();
  numbers_.select(0, added % numbers_.numel()).copy_(number.detach().reshape({}), /*non_blocking=*/true);
  added_ = added_ + 1;
}

void MovingMean::merge(const MovingMean& other) {
  const auto mine = numbers_.narrow(0, 0, count());
  const auto theirs = other.numbers_.narrow(0, 0, other.count()).to(mine.device());
  numbers_ = at::cat({mine, theirs});
  const auto held = numbers_.numel();
  added_ = at::full({}, held, at::kLong);
  window_ = std::max(window_, held);
  // Further numbers fill the window before they take the place of others.
  if (held > 0) numbers_ = at::constant_pad_nd(numbers_, {0, window_ - held});
}

std::int64_t MovingMean::count() const { return std::min(added_.item<std::int64_t>(), numbers_.numel()); }

double MovingMean::value() const {
  if (count() > 0) return numbers_.narrow(0, 0, count()).mean().item<double>();
  throw UsageError({.what = "A moving mean has no number", .hint = "call add() first"});
}

}  // namespace hortator
