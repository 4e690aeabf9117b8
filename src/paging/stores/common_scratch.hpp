#pragma once

#include <cstdint>
#include <filesystem>

#include "comm/communicator.hpp"
#include "formats/file/raw_file.hpp"
#include "mpi/all_or_none.hpp"

namespace hortator::paging {

/// A scratch file that several ranks have in common. Of each storage in it each of them writes its own part, all of one
/// size.
struct CommonScratch {
  formats::RawFile file;
  int rank = 0;
  int ranks = 1;
};

/// One for all of these ranks, which are on one node, in the folder of the first of them, with room for so many bytes.
/// It has a name until all have opened it. @collective
CommonScratch make_common_scratch(comm::Communicator& ranks, const std::filesystem::path& folder, std::uint64_t bytes,
                                  const mpi::AllOrNone& all_or_none);

}  // namespace hortator::paging
