#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>

#include "comm/communicator.hpp"
#include "formats/file/raw_file.hpp"
#include "mpi/agree.hpp"

namespace hortator::paging {

/// Zeros whose memory is an unnamed file in `folder`, which is created if it does not exist: see
/// formats::ScratchMemory. For what operators read as a whole and rarely; what is used in turns is better paged
/// (disk_arrays.hpp).
at::Tensor zeros_in_scratch(const std::filesystem::path& folder, std::int64_t elements, at::ScalarType type);

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
