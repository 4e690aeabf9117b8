#include "core/time.hpp"

#include <array>

namespace hortator::core {

std::string utc(std::time_t time, const char* format) {
  std::tm parts{};
  gmtime_r(&time, &parts);
  std::array<char, 64> text{};
  return {text.data(), std::strftime(text.data(), text.size(), format, &parts)};
}

}  // namespace hortator::core
