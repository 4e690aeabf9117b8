#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

/// A simulated accelerator in the host's memory, for tests on every machine: LibTorch's PrivateUse1 under the name
/// "sim". It has what makes accelerators hard: work runs later, on streams; memory that is released is reused at once,
/// and NaN until then; each thread has a current device. Operators run on the CPU, so their results are the CPU's.
/// Host code that reads a device pointer ends with SIGSEGV.
namespace hortator::sim {

constexpr int devices = 4;  ///< of each process

inline c10::Device device(int index = 0) { return {c10::kPrivateUse1, static_cast<c10::DeviceIndex>(index)}; }

/// When work runs: as it is submitted; only when the host waits for it; or in a random order that respects the streams
/// and their events.
enum class Policy { eager, late, random };

/// Waits for all devices, and sets the policy.
void set_policy(Policy policy, std::uint64_t seed = 1);
/// Runs everything that was submitted. Not a wait of the program: the race detector does not count it.
void run_all();

/// Races, uses of released memory and operators that failed, since the last call.
std::vector<std::string> take_findings();
/// While on (the default is off), the host's operators on page-locked memory count as uses by the host.
void watch_host(bool on);

struct Counts {
  std::uint64_t operators = 0;
  std::uint64_t host_waits = 0;  ///< for a stream, an event or a device
  std::uint64_t copies_to_host = 0;
  std::uint64_t reused_blocks = 0;
  std::uint64_t new_blocks = 0;
  std::uint64_t deferred_blocks = 0;  ///< kept because another stream uses them
};
Counts counts();

/// The largest number of bytes of device memory; 0 (the default): no limit.
void set_memory_limit(int device, std::size_t bytes);
/// Bytes that tensors have, and that the allocator has.
std::size_t allocated_bytes(int device);
std::size_t reserved_bytes(int device);

/// The devices on which a thread has made a context, in order of creation.
std::vector<int> contexts();
void forget_contexts();

/// Bytes of page-locked memory.
std::size_t pinned_bytes();

}  // namespace hortator::sim
