#include "formats/tar/pax_records.hpp"

#include <charconv>

#include "formats/tar/header.hpp"

namespace hortator::formats {

std::map<std::string, std::string> parse_pax_records(std::string_view text) {
  std::map<std::string, std::string> records;
  while (!text.empty()) {
    std::size_t length = 0;
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), length);
    const auto digits = static_cast<std::size_t>(parsed.ptr - text.data());
    const bool fits = parsed.ec == std::errc() && length <= text.size() && length > digits + 1 && text[digits] == ' ' &&
                      text[length - 1] == '\n';
    const auto record = fits ? text.substr(digits + 1, length - digits - 2) : std::string_view();
    const auto equals = record.find('=');
    if (equals == std::string_view::npos) throw TarFault("a pax header has a record that is not valid");
    records[std::string(record.substr(0, equals))] = record.substr(equals + 1);
    text.remove_prefix(length);
  }
  return records;
}

}  // namespace hortator::formats
