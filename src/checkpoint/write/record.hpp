#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "mpi/communicator.hpp"

namespace hortator::checkpoint {

/// What a rank reports of its part of a checkpoint, once that is on the disk.
struct Record {
  std::vector<std::uint32_t> blocks = {};  ///< checksums, in the order of its work

  /// Of the file that it made, if it made one.
  struct File {
    std::int64_t bytes = 0;
    std::uint32_t structure = 0;
    std::vector<std::int64_t> offsets = {};  ///< of the datasets, in the order of Layout::tensors
  };
  std::optional<File> file = {};
};

/// As bytes that carry their own checksum.
std::string pack(const Record& record);
/// Nothing for what is not whole.
std::optional<Record> unpack_record(std::string_view bytes);

/// On rank 0 those of all ranks, on the others nothing. @collective
std::vector<Record> gather(const mpi::Communicator& comm, const Record& mine);

}  // namespace hortator::checkpoint
