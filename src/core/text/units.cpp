#include "core/text/units.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <hortator/error.hpp>

#include "core/text/text.hpp"

namespace hortator::units {
namespace {

using text::print;

[[noreturn]] void refuse_bytes(std::string_view text, const char* hint) {
  throw UsageError({.what = "Invalid byte count '" + std::string(text) + "'", .hint = hint});
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blanks = " \t\n\r\v\f";
  text.remove_prefix(std::min(text.find_first_not_of(blanks), text.size()));
  return text.substr(0, text.find_last_not_of(blanks) + 1);
}

std::string upper(std::string_view text) {
  std::string result(text);
  for (auto& c : result) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return result;
}

}  // namespace

std::string bytes(std::uint64_t count) {
  static constexpr std::array<const char*, 6> names = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  if (count < 1024) return print("%llu B", static_cast<unsigned long long>(count));
  double value = static_cast<double>(count);
  std::size_t unit = 0;
  while (value >= 1024 && unit + 1 < names.size()) {
    value /= 1024;
    ++unit;
  }
  return print("%.1f %s", value, names[unit]);
}

std::uint64_t parse_bytes(std::string_view text) {
  struct Unit {
    std::string_view name;
    double bytes;
  };
  static constexpr std::array<Unit, 10> units = {{{"", 1},
                                                  {"B", 1},
                                                  {"KIB", 1024},
                                                  {"MIB", 0x1p20},
                                                  {"GIB", 0x1p30},
                                                  {"TIB", 0x1p40},
                                                  {"KB", 1e3},
                                                  {"MB", 1e6},
                                                  {"GB", 1e9},
                                                  {"TB", 1e12}}};
  constexpr double max = 0x1p63;
  auto number = trimmed(text);
  if (number.starts_with('+') && !number.starts_with("+-")) number.remove_prefix(1);
  double value = 0;
  const auto* last = number.data() + number.size();
  const auto [end, error] = std::from_chars(number.data(), last, value);
  std::uint64_t whole = 0;  // the exact value of a whole number
  const bool is_whole = std::from_chars(number.data(), last, whole).ptr == end;
  const auto name = trimmed(number.substr(static_cast<std::size_t>(end - number.data())));
  // A small b after a decimal prefix is ambiguous: some read it as bits, others as bytes.
  const bool may_be_bits = name.size() == 2 && name.ends_with('b');
  for (const auto& unit : units) {
    const double bytes = value * unit.bytes;
    if (error != std::errc{} || unit.name != upper(name) || !(bytes >= 0 && bytes < max)) continue;
    if (may_be_bits) refuse_bytes(text, "write MB for a million bytes; a small b may mean bits");
    if (unit.bytes == 1 && bytes != std::floor(bytes)) continue;
    return is_whole && unit.bytes == 1 ? whole : static_cast<std::uint64_t>(bytes);
  }
  refuse_bytes(text, "use a form like 64MiB or 4096");
}

std::string duration(std::chrono::duration<double> time) {
  const double seconds = time.count();
  if (!std::isfinite(seconds) || seconds < 0) return "?";
  if (seconds < 1) return print("%.1f ms", seconds * 1e3);
  if (seconds < 60) return print("%.1f s", seconds);
  const auto whole = static_cast<long long>(std::llround(seconds));
  if (whole < 3600) return print("%lld min %02lld s", whole / 60, whole % 60);
  return print("%lld h %02lld min", whole / 3600, whole % 3600 / 60);
}

std::optional<std::chrono::milliseconds> parse_duration(std::string_view text) {
  struct Unit {
    std::string_view name;
    double milliseconds;
  };
  static constexpr std::array<Unit, 4> units = {{{"ms", 1}, {"s", 1e3}, {"min", 60e3}, {"h", 3600e3}}};
  constexpr double max = 1e15;
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [suffix, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc()) return {};
  auto name = std::string_view(suffix, static_cast<std::size_t>(end - suffix));
  while (name.starts_with(' ')) name.remove_prefix(1);
  for (const auto& unit : units) {
    const double time = value * unit.milliseconds;
    if (unit.name == name && time >= 1 && time < max) return std::chrono::milliseconds(static_cast<std::int64_t>(time));
  }
  return {};
}

std::string clock(double seconds) {
  const long long whole = std::llround(seconds);
  if (whole < 3600) return print("%lld:%02lld", whole / 60, whole % 60);
  return print("%lld:%02lld:%02lld", whole / 3600, whole % 3600 / 60, whole % 60);
}

std::string number(double value) { return print("%.3g", value); }

}  // namespace hortator::units
