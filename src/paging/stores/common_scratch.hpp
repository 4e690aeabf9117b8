#pragma once

#include <cstdint>
#include <filesystem>

#include "comm/communicator.hpp"
#include "formats/file/raw_file.hpp"
#include "mpi/all_or_none.hpp"

namespace hortator::paging {

/// A scratch file that several ranks share. Each rank writes its own part of each storage; all parts have one size.
struct CommonScratch {
  formats::RawFile file;
  int rank = 0;
  int ranks = 1;
};

/// Makes one for all of these ranks, which must be on one node, in the folder of the first one, with space for `bytes`.
/// It has a name until all ranks have opened it. @collective
CommonScratch make_common_scratch(comm::Communicator& ranks, const std::filesystem::path& folder, std::uint64_t bytes,
                                  const mpi::AllOrNone& all_or_none);

}  // namespace hortator::paging
