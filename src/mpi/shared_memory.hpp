#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "mpi/communicator.hpp"

namespace hortator::mpi {

/// Memory that all ranks of one node map, a part for each. It has no name in any file system: the kernel takes it back
/// when the last process has gone, however it went. Every page is there before it is used, so that touching it cannot
/// fail. Unmapping is local: others keep their view.
class SharedMemory {
 public:
  /// Zeroed parts of `bytes_a_rank` each, the same on all ranks. `node` are ranks that share memory, `all` those that
  /// throw together when one node has none: `node` itself, or what it is a part of. `name` shows up in /proc/PID/maps.
  /// @collective over `all`
  SharedMemory(const Communicator& node, const Communicator& all, std::size_t bytes_a_rank, const std::string& name);
  /// Starts on a page.
  std::byte* part(int rank) const { return memory_.get() + static_cast<std::size_t>(rank) * stride_; }
  std::size_t part_bytes() const { return bytes_; }
  int parts() const { return parts_; }

 private:
  struct Unmap {
    std::size_t bytes;
    void operator()(std::byte* begin) const noexcept;
  };

  std::size_t bytes_;
  std::size_t stride_;
  int parts_;
  std::unique_ptr<std::byte, Unmap> memory_;
};

}  // namespace hortator::mpi
