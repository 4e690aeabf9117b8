#pragma once

#include <cuda_runtime_api.h>

#include <cstdio>

namespace hortator::test {

/// Whether there is a device to test on. Where there is none it says why, in the words by which ctest lists a test as
/// skipped: `if (!test::has_gpu()) return;` first in each test.
inline bool has_gpu() {
  int count = 0;
  const auto code = cudaGetDeviceCount(&count);
  if (code == cudaSuccess && count > 0) return true;
  static bool told = false;
  if (!told)
    std::printf("skipped: no CUDA device (%s)\n", code == cudaSuccess ? "none visible" : cudaGetErrorString(code));
  told = true;
  return false;
}

}  // namespace hortator::test
