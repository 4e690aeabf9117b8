#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

/// Counts the CPU memory of LibTorch's tensors in this process, and can keep it from being used.
namespace hortator::machine {

/// Where counted memory comes from.
enum class CountedMemory {
  used,      ///< from LibTorch's allocator, as always
  reserved,  ///< addresses that take no memory until something is written there; reads find zeros
};

/// Counts from now on, until the process ends. Later calls have no effect.
void count_memory(CountedMemory kind);
bool counts_memory() noexcept;
/// Whether tensors have addresses only: code that would write to them by pointers leaves that out.
bool reserves_memory() noexcept;

/// Counts memory that is not from LibTorch's allocator, such as that which ranks share. Has no effect unless memory is
/// counted.
void note_memory(const void* data, std::size_t bytes, std::string_view made_by);
void forget_memory(const void* data) noexcept;

/// Memory that exists, or existed, at one address.
struct Allocation {
  const void* data = nullptr;
  std::size_t bytes = 0;
  std::string_view made_by = "";  ///< the operator that made it; empty: unknown
  bool is_live = true;
};

/// The largest number of bytes that existed at once, and what existed then.
struct MemoryPeak {
  std::size_t bytes = 0;
  std::vector<Allocation> allocations;
};
MemoryPeak memory_peak();
std::size_t counted_bytes();

/// While it lives, what this thread allocates was made by `name`, which must outlive the process's counting. Where they
/// nest, the outermost counts.
class MemoryMaker {
 public:
  explicit MemoryMaker(std::string_view name) noexcept;
  ~MemoryMaker();
  MemoryMaker(const MemoryMaker&) = delete;
  MemoryMaker& operator=(const MemoryMaker&) = delete;

 private:
  bool is_outermost_;
};

}  // namespace hortator::machine
