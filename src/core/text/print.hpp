#pragma once

#include <array>
#include <cstdio>
#include <string>

namespace hortator::core {

/// printf for short texts.
template <typename... Args>
std::string print(const char* format, Args... args) {
  std::array<char, 128> buffer{};
  std::snprintf(buffer.data(), buffer.size(), format, args...);
  return buffer.data();
}

}  // namespace hortator::core
