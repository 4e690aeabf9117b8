#pragma once

#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hortator::data_test {

using Members = std::vector<std::pair<std::string, std::string>>;

/// A tar archive of these names and contents. `size` replaces the sizes in the headers.
inline std::string tar(const Members& members, std::optional<std::uint64_t> size = {}) {
  std::string all;
  for (const auto& [name, content] : members) {
    std::string header(512, '\0');
    header.replace(0, name.size(), name);
    char octal[24];
    std::snprintf(octal, sizeof octal, "%011llo", static_cast<unsigned long long>(size.value_or(content.size())));
    header.replace(124, 11, octal);
    header[156] = '0';
    header.replace(257, 5, "ustar");
    header.replace(148, 8, 8, ' ');
    unsigned sum = 0;
    for (const auto byte : header) sum += static_cast<unsigned char>(byte);
    char digits[8];
    std::snprintf(digits, sizeof digits, "%06o", sum);
    header.replace(148, 7, std::string(digits, 7));
    all += header + content;
    all.resize((all.size() + 511) / 512 * 512, '\0');
  }
  return all + std::string(1024, '\0');
}

}  // namespace hortator::data_test
