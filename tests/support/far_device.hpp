#pragma once

#include <c10/core/Device.h>

#include <cstdint>

/// A device for tests, on every machine: what LibTorch calls PrivateUse1. Its memory is the host's under addresses that
/// nobody can read, so that whoever takes a pointer of the device's for one of the host's ends with SIGSEGV, and a
/// tensor on the wrong side is refused by LibTorch as anywhere. Operators run at once, on the CPU, with copies of their
/// tensors. Copies that are given to a stream beside the current one, and need not be waited for, are made as late as
/// they may be: when an event behind them is waited for. Whoever does not wait finds NaN.
namespace hortator::test {

inline const c10::Device far_device(c10::kPrivateUse1, 0);

constexpr std::uintptr_t far_bit = std::uintptr_t{1} << 47;  // set in no address that a process may use

/// Where its bytes really are; an address of the host stays what it is.
template <typename T>
T* near(T* address) {
  return reinterpret_cast<T*>(reinterpret_cast<std::uintptr_t>(address) & ~far_bit);
}

/// Copies that were given to streams and not made yet.
std::int64_t far_copies_to_come();

/// Bytes of the device's memory in use, and the most that there were since reset_far_peak().
std::int64_t far_bytes();
std::int64_t far_peak();
void reset_far_peak();

}  // namespace hortator::test
