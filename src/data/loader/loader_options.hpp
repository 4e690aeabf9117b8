#pragma once

#include <hortator/datasets/loader_base.hpp>
#include <memory>

namespace hortator::data {

/// Throws UsageError for options that contradict each other or do not fit the contents.
void check(const LoaderOptions& options, const Contents& contents);

/// The sampler that the options choose.
std::shared_ptr<const Sampler> sampler_of(const LoaderOptions& options);

}  // namespace hortator::data
