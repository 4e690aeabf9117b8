#pragma once

#include <array>
#include <cstdio>
#include <string>

namespace hortator::core {

/// snprintf into a string; the result is cut to 127 characters.
template <typename... Args>
std::string print(const char* format, Args... args) {
  std::array<char, 128> buffer{};
  std::snprintf(buffer.data(), buffer.size(), format, args...);
  return buffer.data();
}

}  // namespace hortator::core
