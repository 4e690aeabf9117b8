#pragma once

#include <cstdint>
#include <hortator/data.hpp>
#include <optional>

namespace hortator::golden {

/// 0, 1, ... count - 1, read one after the other; it may say how many they are.
struct CountingStream {
  std::int64_t count = 0;
  bool says_size = false;
  std::int64_t at = 0;

  std::optional<std::int64_t> size() const { return says_size ? std::optional(count) : std::nullopt; }
  void reset() { at = 0; }
  std::optional<std::int64_t> next() { return at < count ? std::optional(at++) : std::nullopt; }
};

/// The same by number.
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
