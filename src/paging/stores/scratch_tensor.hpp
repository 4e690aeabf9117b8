#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>

namespace hortator::paging {

/// Zeros whose memory is a file without a name in `folder`, which is made if it is not there: see
/// formats::ScratchMemory. For what operators read as a whole and now and then; what comes and goes in turns is better
/// paged (disk_arrays.hpp).
at::Tensor zeros_in_scratch(const std::filesystem::path& folder, std::int64_t elements, at::ScalarType type);

}  // namespace hortator::paging
