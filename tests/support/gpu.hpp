#pragma once

#include <c10/core/DeviceType.h>

#include <cstdio>

#ifndef HORTATOR_TEST_SIM
#include <cuda_runtime_api.h>
#endif

/// The tests with the label gpu run on a CUDA device where there is one, and on the simulated accelerator
/// (tests/support/sim/sim.hpp) on every machine: there they are compiled with HORTATOR_TEST_SIM.
namespace hortator::test {

#ifdef HORTATOR_TEST_SIM

inline constexpr bool is_simulated = true;
inline constexpr auto accelerator_type = c10::kPrivateUse1;
inline bool has_gpu() { return true; }

/// For what only hardware can show.
inline bool has_hardware() {
  std::puts("skipped: the simulated accelerator cannot show this");
  return false;
}

#else

inline constexpr bool is_simulated = false;
inline constexpr auto accelerator_type = c10::kCUDA;

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
inline bool has_hardware() { return has_gpu(); }

#endif

}  // namespace hortator::test
