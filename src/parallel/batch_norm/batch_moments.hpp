#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace hortator::parallel {

class SharedStatistics;

/// Statistics of all ranks' samples, one number for each channel, in the type in which the layer computes.
struct BatchMoments {
  at::Tensor mean;
  at::Tensor variance;  ///< biased
  at::Tensor count;     ///< values for each channel: one number, on the device, so that nothing waits for it

  at::Tensor unbiased_variance() const;
};

/// Those of `input`, whose dimension 1 holds the channels. Throws UsageError on all ranks if they have one value a
/// channel together (on the CPU; elsewhere the host would wait for it). @collective
BatchMoments moments_of(const at::Tensor& input, SharedStatistics& statistics);

/// The tensor in the type in which the layer computes: 16-bit numbers are added up and normalised in 32 bits.
at::Tensor widened(const at::Tensor& tensor);

/// The dimensions over which `input` has one mean a channel.
std::vector<std::int64_t> all_but_channels(const at::Tensor& input);

}  // namespace hortator::parallel
