#pragma once

#include <cstddef>
#include <cstdint>

#include "formats/gguf/header.hpp"

namespace hortator::formats {

/// Converts whole blocks of a quantised type to float. `from` has `elements` / block_elements blocks. Returns false for
/// types whose elements are plain numbers.
bool dequantise(const GgufType& type, const std::byte* from, std::int64_t elements, float* to);

}  // namespace hortator::formats
