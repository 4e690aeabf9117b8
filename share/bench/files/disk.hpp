#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "bench/paired_timing.hpp"
#include "mpi/communicator.hpp"

/// Helpers for benchmarks of files: a temporary folder, and raw reads and writes as the baseline.
namespace hortator::bench {

/// A temporary folder that all ranks see.
class Scratch {
 public:
  Scratch(const mpi::Communicator& comm, const std::filesystem::path& below);  ///< @collective
  ~Scratch();                                                                  ///< @collective
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  std::filesystem::path operator/(const char* name) const { return path_ / name; }
  /// Removes all files, so that their removal does not count in the next measurement. @collective
  void make_empty() const;

 private:
  void remove() const;

  const mpi::Communicator& comm_;
  std::filesystem::path path_;
};

std::int64_t bytes_of(const std::vector<at::Tensor>& tensors);

/// All ranks write equal parts of one file by pwrite and fsync. @collective
void write_raw(const mpi::Communicator& comm, const std::filesystem::path& path,
               const std::vector<at::Tensor>& tensors);
/// This rank reads all bytes by pread.
void read_raw(const std::filesystem::path& path, const std::vector<at::Tensor>& tensors);

/// Rank 0 drops these files, and the files in these folders, from the page cache.
void forget_cached(const mpi::Communicator& comm, const std::vector<std::filesystem::path>& paths);

/// Like time_in_pairs, but excludes the waiting before each block, since that waits for the disk. @collective
PairedTiming time_disk(const mpi::Communicator& comm, const Sides& sides, int blocks);

}  // namespace hortator::bench
