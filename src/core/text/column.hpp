#pragma once

#include <string>
#include <string_view>

/// Text on a terminal, where UTF-8 characters take one column each and escape sequences none.
namespace hortator::core {

int width_of(std::string_view text);

/// At most `columns` wide: what is too long ends there. Text without escape sequences.
std::string cut(std::string text, int columns);

/// On one line: control characters become spaces.
std::string one_line(std::string text);

}  // namespace hortator::core
