#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "mpi/communicator.hpp"

namespace hortator::checkpoint {

/// What a rank reports once its part of a checkpoint is on the disk.
struct RankReport {
  std::vector<std::uint32_t> blocks = {};  ///< checksums, in the order of its slices

  /// Facts about the file that this rank created.
  struct File {
    std::int64_t bytes = 0;
    std::uint32_t structure_crc32c = 0;
    std::vector<std::int64_t> offsets = {};  ///< of the datasets, in the order of Layout::tensors
  };
  std::optional<File> file = {};  ///< absent unless the rank created its file
};

/// The report as bytes that carry their own checksum.
std::string pack(const RankReport& report);
/// Returns nothing if the bytes are incomplete or damaged.
std::optional<RankReport> unpack_report(std::string_view bytes);

/// Returns the reports of all ranks on rank 0, and none on the others. @collective
std::vector<RankReport> gather(const mpi::Communicator& comm, const RankReport& mine);

}  // namespace hortator::checkpoint
