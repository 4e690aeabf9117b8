#pragma once

#include <cstddef>

namespace hortator::test {

/// Two fictitious devices of HIP and their page-locked memory.
struct FakeHip {
  int locked_blocks = 0;
  std::size_t largest_block = std::size_t{1} << 20;
  int last_errors_read = 0;
};
FakeHip& fake_hip();

/// Calls the observer that LibTorch's allocator has got.
void run_out_of_memory(std::size_t asked_bytes);
bool is_observed();

}  // namespace hortator::test
