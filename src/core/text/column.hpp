#pragma once

#include <string>
#include <string_view>

/// Text on a terminal, where UTF-8 characters take one column each and escape sequences none.
namespace hortator::core {

int width_of(std::string_view text);

/// Cuts the text to `columns`. The text must not contain escape sequences.
std::string cut(std::string text, int columns);

/// Puts the text on one line: control characters become spaces.
std::string one_line(std::string text);

}  // namespace hortator::core
