#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>

namespace hortator::paging {

/// Zeros whose memory is an unnamed file in `folder`, which is created if it does not exist: see
/// formats::ScratchMemory. For what operators read as a whole and rarely; what is used in turns is better paged
/// (disk_arrays.hpp).
at::Tensor zeros_in_scratch(const std::filesystem::path& folder, std::int64_t elements, at::ScalarType type);

}  // namespace hortator::paging
