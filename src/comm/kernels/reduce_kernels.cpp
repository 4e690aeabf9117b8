#include "comm/kernels/reduce_kernels.hpp"

#include <array>

namespace hortator::comm::kernels {

std::size_t size_of(Element element) {
  constexpr std::array<std::size_t, 12> sizes = {4, 8, 2, 2, 1, 1, 2, 4, 8, 1, 8, 16};
  return sizes[static_cast<std::size_t>(element)];
}

Kernel best_kernel() {
  static const Kernel best = [] {
    if (const auto kernel = avx512_kernel()) return kernel;
    if (const auto kernel = avx2_kernel()) return kernel;
    return portable_kernel();
  }();
  return best;
}

}  // namespace hortator::comm::kernels
