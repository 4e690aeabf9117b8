#pragma once

#include <cstddef>
#include <string>

#include "core/text/text.hpp"

namespace hortator::accelerator {

/// Where a snapshot holds the object with this number: "models/0".
inline std::string numbered(const char* folder, std::size_t number) { return text::concat(folder, "/", number); }

}  // namespace hortator::accelerator
