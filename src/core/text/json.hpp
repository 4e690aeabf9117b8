#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>

/// JSON of records and of numbers. Untrusted or damaged text is limited in size and nesting.
namespace hortator::core {

constexpr std::uint64_t max_record_bytes = std::uint64_t{1} << 24;  ///< of records and configuration files
constexpr int max_record_levels = 64;

/// Whether values of a JSON text are nested at most `levels` deep. Looks only at brackets and strings: the text need
/// not be valid JSON.
bool is_shallow(std::string_view json, int levels = max_record_levels);

/// Parses a record. The result is discarded (is_discarded(); no object, array or value) for invalid JSON and for text
/// that is too large or too deeply nested.
template <typename Json = nlohmann::json>
Json parse_record(std::string_view text) {
  if (text.size() > max_record_bytes || !is_shallow(text)) return Json(Json::value_t::discarded);
  return Json::parse(text, nullptr, /*allow_exceptions=*/false);
}

/// Whether `text` is well-formed UTF-8 (RFC 3629): no overlong forms, no surrogates, nothing above U+10FFFF.
bool is_utf8(std::string_view text);

/// JSON for any double: values that JSON cannot express become "NaN", "Infinity" and "-Infinity".
nlohmann::ordered_json json_of(double number);
/// The reverse; NaN for anything that is not a number.
double number_of(const nlohmann::ordered_json& json);

}  // namespace hortator::core
