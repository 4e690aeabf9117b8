// Parsing and printing of sizes. Accelerate has two parsers, Hortator one, which accepts what either accepts, except
// what they parse differently.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <hortator/error.hpp>
#include <optional>
#include <sstream>

#include "core/text/text.hpp"
#include "core/text/units.hpp"
#include "replay.hpp"
#include "sizes.hpp"

namespace hortator::golden {
namespace {

bool is_convert_size(const json& file) {
  const auto& one = file.at("cases").front();
  return (one.contains("in") && (one.contains("accelerate") || one.contains("accelerate_error"))) ||
         one.contains("convert_bytes");
}

std::optional<std::int64_t> read(const std::string& size) {
  try {
    return static_cast<std::int64_t>(units::parse_bytes(size));
  } catch (const UsageError&) {
    return {};
  }
}

Outcome judge_refused_size(const json& one, const std::string& size, const json& expected) {
  if (const auto* rule = rule_that_refuses(size)) return on_purpose(rule);
  if (expected >= 0x1p63) return on_purpose("sizes_have_63_bits");
  if (one.contains("accelerate_error") && expected < 0) return equal();
  return differs(text::concat(size, " was rejected, Accelerate has ", expected));
}

// Parses the integer in "5" and "5 B" exactly; nothing if the number is not an integer.
std::optional<std::int64_t> whole_number_in(std::string_view size) {
  std::int64_t number = 0;
  const auto begin = std::min(size.find_first_not_of(blanks), size.size());
  const auto [end, error] = std::from_chars(size.data() + begin, size.data() + size.size(), number);
  return error == std::errc() ? std::optional(number) : std::nullopt;
}

Outcome judge_taken(const std::string& size, std::int64_t bytes) {
  const auto number = std::stod(size);
  const auto last = size.find_last_not_of(blanks) + 1;
  const auto first = size.find_last_of("0123456789. \t\n\r\v\f", last - 1) + 1;
  const auto unit = size.substr(first, last - first);
  const bool is_bare = unit.empty() || unit == "B" || unit == "b";
  if (is_bare && (bytes == whole_number_in(size) || bytes == static_cast<std::int64_t>(number)))
    return on_purpose("a_bare_number_is_bytes");
  const bool is_tebi = unit.size() == 3 && std::string_view("tT").find(unit[0]) != std::string_view::npos;
  if (is_tebi && bytes == static_cast<std::int64_t>(number * 0x1p40)) return on_purpose("tebibytes_are_known");
  return differs(text::concat(size, " was parsed as ", bytes, ", Accelerate rejects it"));
}

Outcome judge_reading(const json& one) {
  const auto& in = one.at("in");
  const auto size = in.is_string() ? in.get<std::string>() : in.dump();
  const auto ours = read(size);
  const auto* reader = one.contains("accelerate") ? "accelerate" : one.contains("hub") ? "hub" : nullptr;
  if (reader == nullptr) return ours ? judge_taken(size, *ours) : equal();
  if (!ours) return judge_refused_size(one, size, one.at(reader));
  return compare(size, *ours, one.at(reader));
}

/// Accelerate's "117.74 MB" is Hortator's "117.7 MiB".
Outcome judge_printing(const json& one) {
  constexpr std::array<std::array<std::string_view, 2>, 6> names = {
      {{"bytes", "B"}, {"KB", "KiB"}, {"MB", "MiB"}, {"GB", "GiB"}, {"TB", "TiB"}, {"PB", "PiB"}}};
  const auto ours = units::bytes(static_cast<std::uint64_t>(one.at("bytes").get<double>()));
  std::istringstream here(ours);
  std::istringstream there(one.at("convert_bytes").get<std::string>());
  double our_number = 0;
  double number = 0;
  std::string our_unit;
  std::string unit;
  here >> our_number >> our_unit;
  there >> number >> unit;
  const double off = unit == "bytes" ? std::floor(number) - our_number : number - our_number;
  for (const auto& [their_name, our_name] : names) {
    constexpr double digit = 0.0551;  // Hortator rounds to one digit, Accelerate to two
    if (their_name == unit && our_name == our_unit && std::abs(off) < digit)
      return on_purpose("binary_units_are_named_so");
  }
  return differs(text::concat(ours, ", Accelerate has ", one.at("convert_bytes")));
}

Outcome judge_convert_size(const json& one, const json& /*file*/) {
  return one.contains("in") ? judge_reading(one) : judge_printing(one);
}

}  // namespace

Format convert_size() {
  return {.name = "convert_size",
          .recognises = is_convert_size,
          .world = [](const json&) { return 0; },
          .judge = judge_convert_size};
}

}  // namespace hortator::golden
