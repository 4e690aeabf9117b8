#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace hortator::data {

/// A long text of tokens with random access.
class Tokens {
 public:
  virtual ~Tokens() = default;
  virtual std::int64_t size() const = 0;
  virtual at::ScalarType type() const = 0;
  virtual void read(std::int64_t first, std::int64_t count, void* to) const = 0;
};

}  // namespace hortator::data
