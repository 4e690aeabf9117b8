#pragma once

#include <cstdint>
#include <filesystem>
#include <span>

namespace hortator::data {

/// Throws UsageError unless every number in `samples` is from 0 to size - 1.
void require_samples(std::span<const std::int64_t> samples, std::int64_t size, const std::filesystem::path& path);

}  // namespace hortator::data
