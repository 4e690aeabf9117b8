#pragma once

#include <array>
#include <cstdio>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

/// Building and parsing text. (GCC 12 has no std::format.)
namespace hortator::text {

/// The arguments joined, each as a stream prints it.
template <typename... Parts>
std::string concat(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return std::move(out).str();
}

template <typename Range>
std::string join(const Range& parts, std::string_view separator = ", ") {
  std::ostringstream out;
  bool first = true;
  for (const auto& part : parts) {
    if (!first) out << separator;
    out << part;
    first = false;
  }
  return std::move(out).str();
}

/// snprintf into a string; the result is cut to 127 characters.
template <typename... Args>
std::string print(const char* format, Args... args) {
  std::array<char, 128> buffer{};
  std::snprintf(buffer.data(), buffer.size(), format, args...);
  return buffer.data();
}

/// "'name'"
std::string quote(std::string_view name);

/// "3 ranks", "1 rank"
std::string count(long long number, std::string_view noun);

/// The entry of `known` that is nearest to `name`; empty when none is near: of three characters, one may be wrong.
/// Leading dashes do not count.
std::string nearest(std::string_view name, std::span<const std::string> known);

/// "did you mean 'x'?" or "known are a, b, c"
std::string suggestion(std::string_view name, std::span<const std::string> known);

/// The last part of a path: "bin/train" gives "train".
std::string_view file_name(std::string_view path);

std::vector<std::string> split(std::string_view text, char separator);

/// The text up to the first end of a line, such as the answer of a program or the kernel.
std::string first_line(std::string_view text);

/// Parses y, yes, t, true, on, 1 and n, no, f, false, off, 0, in any case; nothing for any other text.
std::optional<bool> parse_bool(std::string_view text);

/// Parses all of `text` as an integer. Returns false, with `value` undefined, for any other text.
bool parse_integer(std::string_view text, long long& value);

}  // namespace hortator::text
