#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "mpi/communicator.hpp"
#include "tools/bench/paired_timing.hpp"

/// What measurements of files have in common: a place for them, and the same bytes without any format.
namespace hortator::tools::bench {

/// A folder below the measurement's own, that all ranks see and that goes at its end.
class Scratch {
 public:
  Scratch(const mpi::Communicator& comm, const std::filesystem::path& below);  ///< @collective
  ~Scratch();                                                                  ///< @collective
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  std::filesystem::path operator/(const char* name) const { return path_ / name; }
  /// What was written there goes, so that removing it is no part of the next measurement. @collective
  void make_empty() const;

 private:
  void remove() const;

  const mpi::Communicator& comm_;
  std::filesystem::path path_;
};

std::int64_t bytes_of(const std::vector<at::Tensor>& tensors);

/// All bytes by all ranks, equal shares, into one file, by pwrite and fsync. @collective
void write_raw(const mpi::Communicator& comm, const std::filesystem::path& path,
               const std::vector<at::Tensor>& tensors);
/// All bytes by this rank, by pread.
void read_raw(const std::filesystem::path& path, const std::vector<at::Tensor>& tensors);

/// The system forgets what it holds of these files, and of those in these folders. By rank 0.
void forget_cached(const mpi::Communicator& comm, const std::vector<std::filesystem::path>& paths);

/// As time_in_pairs, but what lines the ranks up is no part of the time: it waits for the disk. @collective
PairedTiming time_disk(const mpi::Communicator& comm, const Sides& sides, int blocks);

}  // namespace hortator::tools::bench
