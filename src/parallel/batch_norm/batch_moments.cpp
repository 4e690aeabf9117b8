#include "parallel/batch_norm/batch_moments.hpp"

#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/var_mean.h>
#include <ATen/ops/zeros.h>

#include <hortator/error.hpp>

#include "core/text/text.hpp"
#include "parallel/batch_norm/shared_statistics.hpp"

namespace hortator::parallel {
namespace {

std::int64_t samples_a_channel(const at::Tensor& input) {
  return input.size(1) == 0 ? 0 : input.numel() / input.size(1);
}

// One reduction is enough: sums of squares are computed from each rank's variance in fp64, so subtracting the square of
// the mean again loses precision at 1e-16, not at the input's precision.
at::Tensor own_sums(const at::Tensor& input) {
  const auto channels = input.size(1);
  const auto options = input.options().dtype(at::kDouble);
  const auto count = static_cast<double>(samples_a_channel(input));
  if (count == 0) return at::zeros({2 * channels + 1}, options);
  const auto [variance, mean] = at::var_mean(widened(input), all_but_channels(input), /*correction=*/0);
  const auto exact = mean.to(at::kDouble);
  return at::cat({exact * count, (variance.to(at::kDouble) + exact.square()) * count, at::full({1}, count, options)});
}

// Only on the CPU: the host would have to wait for a device.
void check_count(const at::Tensor& count) {
  if (!count.is_cpu() || count.item<double>() > 1) return;
  throw UsageError({.what = text::concat("A synchronised BatchNorm got ", count.item<std::int64_t>(),
                                         " values a channel on all ranks together"),
                    .why = "in training mode it needs more than one",
                    .hint = "use larger batches, or eval()"});
}

}  // namespace

at::Tensor widened(const at::Tensor& tensor) {
  const bool is_short = tensor.scalar_type() == at::kHalf || tensor.scalar_type() == at::kBFloat16;
  return is_short ? tensor.to(at::kFloat) : tensor;
}

std::vector<std::int64_t> all_but_channels(const at::Tensor& input) {
  std::vector<std::int64_t> dims = {0};
  for (std::int64_t dim = 2; dim < input.dim(); ++dim) dims.push_back(dim);
  return dims;
}

BatchMoments moments_of(const at::Tensor& input, SharedStatistics& statistics) {
  const at::NoGradGuard no_grad;
  const auto channels = input.size(1);
  const auto sums = own_sums(input);
  statistics.add_up(sums);
  const auto count = sums.narrow(0, 2 * channels, 1);
  check_count(count);
  const auto type = widened(input).scalar_type();
  const auto mean = sums.narrow(0, 0, channels) / count;
  const auto variance = (sums.narrow(0, channels, channels) / count - mean.square()).clamp_min(0);
  return {.mean = mean.to(type), .variance = variance.to(type), .count = count};
}

at::Tensor BatchMoments::unbiased_variance() const {
  return variance * (count / (count - 1)).to(variance.scalar_type());
}

}  // namespace hortator::parallel
