#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

namespace hortator::formats {

/// Reads bytes of a file: offset, address, number.
using FileBytes = std::function<void(std::uint64_t, void*, std::size_t)>;

}  // namespace hortator::formats
