#pragma once

#include <cstdint>
#include <hortator/data.hpp>
#include <optional>

namespace hortator::golden {

/// A stream of 0, 1, ... count - 1. Its size is known only if `has_size` is set.
struct CountingStream {
  std::int64_t count = 0;
  bool has_size = false;
  std::int64_t at = 0;

  std::optional<std::int64_t> size() const { return has_size ? std::optional(count) : std::nullopt; }
  void reset() { at = 0; }
  std::optional<std::int64_t> next() { return at < count ? std::optional(at++) : std::nullopt; }
};

/// The same as a data set with random access.
struct CountingDataset {
  std::int64_t count = 0;
  std::int64_t size() const { return count; }
  std::int64_t get(std::int64_t i) const { return i; }
};

inline std::vector<std::int64_t> numbers_of(const at::Tensor& tensor) {
  const auto flat = tensor.contiguous();
  const auto* data = flat.const_data_ptr<std::int64_t>();
  return {data, data + flat.numel()};
}

}  // namespace hortator::golden
