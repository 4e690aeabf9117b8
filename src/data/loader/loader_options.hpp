#pragma once

#include <hortator/datasets/loader_base.hpp>
#include <memory>

namespace hortator::data {

/// Throws UsageError for options that contradict each other, or that such contents cannot have.
void check(const LoaderOptions& options, const Contents& contents);

/// What the options say of the order of samples.
std::shared_ptr<const Sampler> sampler_of(const LoaderOptions& options);

}  // namespace hortator::data
