#pragma once

#include <cuda_runtime_api.h>

#include <cstdio>

namespace hortator::test {

/// Whether there is a CUDA device. If not, prints the reason once, in the form that ctest recognises as a skipped test.
/// Each test begins with `if (!test::has_gpu()) return;`.
inline bool has_gpu() {
  int count = 0;
  const auto code = cudaGetDeviceCount(&count);
  if (code == cudaSuccess && count > 0) return true;
  static bool printed = false;
  if (!printed)
    std::printf("skipped: no CUDA device (%s)\n", code == cudaSuccess ? "none visible" : cudaGetErrorString(code));
  printed = true;
  return false;
}

}  // namespace hortator::test
