#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "mpi/communicator.hpp"

namespace hortator::mpi {

/// Memory that all ranks of one node map, with a part for each. It has no name in any file system: the kernel frees it
/// when the last process has ended, even if that was killed. All pages are allocated in the constructor, so that access
/// cannot fail later. Unmapping is local: others keep their view.
class SharedMemory {
 public:
  /// Zeroed parts of `bytes_a_rank` each, the same number on all ranks. `node` are ranks that share memory. `all` is
  /// `node` or contains it: its ranks throw together when one node has no memory. `name` shows up in /proc/PID/maps.
  /// @collective over `all`
  SharedMemory(const Communicator& node, const Communicator& all, std::size_t bytes_a_rank, const std::string& name);
  /// The part of a rank; starts on a page.
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
