#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "machine/races/race_detector.hpp"

namespace hortator::machine {

/// A range of addresses that belongs to a storage.
struct MemoryOwner {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
  const void* storage = nullptr;       ///< no other has this address while is_gone exists
  int timeline = host_timeline;        ///< the stream for which it was allocated; host_timeline: memory of the host
  std::function<bool()> is_gone = {};  ///< whether the storage has released the memory
  std::vector<int> kept_for = {};      ///< streams that the allocator waits for before it reuses the memory
};

/// The last uses of memory by address. Memory that an allocator has given to another storage of the same stream keeps
/// the uses of the former owner, except for those that the allocator has waited for: so a tensor that is released while
/// another stream uses it is found when its memory is reused.
class MemoryUses {
 public:
  /// The uses of the range of a storage that is known; null: it is not.
  AccessHistory* find(std::uintptr_t begin, std::uintptr_t end, const void* storage);
  /// Makes the storage known, and ends the ownership of those in its range that are gone.
  AccessHistory& add(MemoryOwner owner);
  /// The allocator of the memory that begins there will wait for the stream.
  void keep_for(std::uintptr_t begin, int stream);
  /// The uses of a range, whichever storage owns it.
  AccessHistory& of_range(std::uintptr_t begin, std::uintptr_t end);
  /// The same; null: none is known.
  AccessHistory* find(std::uintptr_t begin, std::uintptr_t end);

 private:
  struct Region {
    std::uintptr_t end = 0;
    AccessHistory history = {};
    std::vector<MemoryOwner> owners = {};
  };
  using Regions = std::map<std::uintptr_t, Region>;

  Regions::iterator containing(std::uintptr_t begin, std::uintptr_t end);
  Region& region_of(std::uintptr_t begin, std::uintptr_t end);
  Region& merged(std::uintptr_t begin, std::uintptr_t end);

  Regions regions_;  ///< by their begin; they do not overlap
};

}  // namespace hortator::machine
