#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace hortator::formats {

struct Utf8Fault {
  std::size_t at = 0;     ///< where the bytes before it are right
  std::size_t bytes = 0;  ///< how many of them are wrong; 0: the text ends within a character
};

/// The first bytes of `text` that are no UTF-8.
std::optional<Utf8Fault> find_utf8_fault(std::string_view text);

}  // namespace hortator::formats
