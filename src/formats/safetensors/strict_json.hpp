#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

/// JSON of files that others wrote. Unlike nlohmann::json, a value keeps repeated names, so that the reader of a format
/// decides about them.
namespace hortator::formats {

/// Why a text is not valid JSON, or a value is not of the expected type.
class JsonFault : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A value of any type. Objects keep their members in the order of the text, repeated names included.
/// Whole numbers are exact: `uint64_t` from 0, `int64_t` below 0, `double` where neither holds them, and for "-0".
struct JsonValue {
  using Array = std::vector<JsonValue>;
  using Object = std::vector<std::pair<std::string, JsonValue>>;
  std::variant<std::nullptr_t, bool, std::uint64_t, std::int64_t, double, std::string, Array, Object> content = nullptr;

  /// For messages, ASCII only: "null", "true", "-2", "the string \"F32\"", "a list", "an object".
  std::string described() const;
  /// Throws JsonFault: "expected ..., got ...".
  [[noreturn]] void refuse(std::string_view expected) const;
};

/// `text` as an ASCII string in quotes, with escape sequences for all that a terminal might obey.
std::string quoted_json(const std::string& text);

/// Parses the whole text. Throws JsonFault, with line and column where the syntax is wrong, for everything that
/// RFC 8259 does not allow, and for byte order marks, ill-formed UTF-8, numbers beyond the range of double and more
/// than 127 nested values. The caller limits the size of the text.
JsonValue parse_strict_json(std::string_view text);

}  // namespace hortator::formats
