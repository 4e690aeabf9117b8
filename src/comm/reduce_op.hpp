#pragma once

namespace hortator::comm {

enum class ReduceOp { sum, mean, max, min, product };

constexpr const char* name(ReduceOp op) {
  constexpr const char* names[] = {"sum", "mean", "max", "min", "product"};
  return names[static_cast<int>(op)];
}

}  // namespace hortator::comm
