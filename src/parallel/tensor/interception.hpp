#pragma once

namespace hortator::parallel {

/// Gives divided tensors (divided_tensor.hpp) their operators. The first call also tests with small tensors whether
/// this LibTorch supports that, and throws Error if not.
void start_division();

}  // namespace hortator::parallel
