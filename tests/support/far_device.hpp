#pragma once

#include <c10/core/Device.h>

#include <cstdint>

/// A simulated device for tests on every machine: LibTorch's PrivateUse1. Its memory is host memory under addresses
/// that cannot be read, so using a device pointer on the host ends with SIGSEGV, and LibTorch rejects a tensor on the
/// wrong device as usual. Operators run at once, on the CPU, with copies of their tensors. Non-blocking copies on a
/// stream other than the default one are made as late as possible: when an event after them is waited for. Code that
/// does not wait reads NaN.
namespace hortator::test {

inline const c10::Device far_device(c10::kPrivateUse1, 0);

constexpr std::uintptr_t far_bit = std::uintptr_t{1} << 47;  // not set in any address of a process

/// Returns the host address of a device address; a host address is returned unchanged.
template <typename T>
T* near(T* address) {
  return reinterpret_cast<T*>(reinterpret_cast<std::uintptr_t>(address) & ~far_bit);
}

/// Number of copies submitted to streams and not made yet.
std::int64_t far_copies_to_come();

/// Bytes of device memory in use, and their peak since reset_far_peak().
std::int64_t far_bytes();
std::int64_t far_peak();
void reset_far_peak();

}  // namespace hortator::test
