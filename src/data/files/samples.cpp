#include "data/files/samples.hpp"

#include <hortator/error.hpp>

#include "core/text/text.hpp"

namespace hortator::data {

void require_samples(std::span<const std::int64_t> samples, std::int64_t size, const std::filesystem::path& path) {
  for (const auto sample : samples) {
    if (sample >= 0 && sample < size) continue;
    throw UsageError({.what = text::concat(path, " has no sample ", sample, ": it has ", size)});
  }
}

}  // namespace hortator::data
