#pragma once

#include <cstdint>
#include <filesystem>
#include <span>

namespace hortator::data {

/// Throws UsageError unless every one of `samples` is one of `size`.
void require_samples(std::span<const std::int64_t> samples, std::int64_t size, const std::filesystem::path& path);

}  // namespace hortator::data
