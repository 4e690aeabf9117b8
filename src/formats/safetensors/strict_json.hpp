#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

/// JSON as the reference's reader of safetensors takes it, fault for fault: names may repeat, nesting has a bound, and
/// what is wrong is said in its words, with line and column. (A general parser keeps the last of two equal names
/// without a word, and cannot say where a value of the wrong kind stood.)
namespace hortator::formats {

/// What is wrong with a text, without the place.
class JsonFault : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A value of any kind. Objects keep their names in order, repeated ones too.
struct JsonValue {
  using Array = std::vector<JsonValue>;
  using Object = std::vector<std::pair<std::string, JsonValue>>;
  std::variant<std::nullptr_t, bool, std::uint64_t, std::int64_t, double, std::string, Array, Object> content = nullptr;

  /// "integer `-2`", "a map": what stands there, for "invalid type: ..., expected ...".
  std::string described() const;
  [[noreturn]] void refuse(std::string_view expected) const;  ///< throws JsonFault
};

/// Reads a text from its beginning to its end, value by value. All of it throws JsonFault, with the place.
class JsonScanner {
 public:
  explicit JsonScanner(std::string_view text) : text_(text) {}

  bool at_null();  ///< reads it if so
  /// Reads the opening brace; what stands there instead is refused.
  void open_object(std::string_view expected);
  /// Reads the next name; false: the closing brace comes next.
  bool next_name(bool first, std::string& name);
  void colon();
  void close_object();  ///< after next_name() said that it comes
  std::string string(std::string_view expected);
  JsonValue value();
  void end();  ///< nothing but white space may follow

  /// Throws `fault` with the present place.
  [[noreturn]] void fail(std::string_view fault) const;

 private:
  static constexpr int max_depth = 128;

  bool peek(char& next);
  bool at(char wanted) const { return index_ < text_.size() && text_[index_] == wanted; }
  bool at_digit() const { return index_ < text_.size() && text_[index_] >= '0' && text_[index_] <= '9'; }
  std::string place(std::size_t index) const;
  [[noreturn]] void fail_at_next(std::string_view fault) const;
  [[noreturn]] void refuse_next(char next, std::string_view expected);
  void word(std::string_view word);
  JsonValue number();
  void digits();
  std::string rest_of_string();
  void escape(std::string& out);
  void unicode_escape(std::string& out);
  std::uint32_t four_hex_digits();
  char next_of_string();
  JsonValue array();
  JsonValue object();
  bool next_element(bool first);
  void descend();

  std::string_view text_;
  std::size_t index_ = 0;
  int depth_left_ = max_depth;
};

}  // namespace hortator::formats
