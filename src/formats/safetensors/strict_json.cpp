#include "formats/safetensors/strict_json.hpp"

#include <nlohmann/json.hpp>

#include "core/text/text.hpp"

namespace hortator::formats {
namespace {

constexpr std::size_t max_json_depth = 127;

/// "parse error at line 1, column 3: ...", without nlohmann's number of the exception and without the text that was
/// read last, which may be long and hold bytes that a terminal obeys.
std::string syntax_fault(std::string_view message) {
  message = message.substr(message.find(']') + 1);
  if (message.starts_with(' ')) message.remove_prefix(1);
  return std::string(message.substr(0, message.find("; last read: ")));
}

class JsonTreeBuilder final : public nlohmann::json_sax<nlohmann::json> {
 public:
  JsonValue take() { return std::move(root_); }

  bool null() override { return put(nullptr); }
  bool boolean(bool value) override { return put(value); }
  bool number_unsigned(number_unsigned_t value) override { return put(value); }
  // The parser calls this for numbers with a sign: "-0" is the only one that is not below 0.
  bool number_integer(number_integer_t value) override { return value == 0 ? put(-0.0) : put(value); }
  bool number_float(number_float_t value, const string_t& /*text*/) override { return put(value); }
  bool string(string_t& value) override { return put(std::move(value)); }
  bool binary(binary_t& /*value*/) override { return false; }  // no JSON text has one

  bool start_array(std::size_t /*unknown*/) override { return open(JsonValue::Array{}); }
  bool end_array() override { return close(); }
  bool start_object(std::size_t /*unknown*/) override { return open(JsonValue::Object{}); }
  bool end_object() override { return close(); }
  bool key(string_t& name) override {
    name_ = std::move(name);
    return true;
  }

  bool parse_error(std::size_t position, const std::string& /*last*/, const nlohmann::json::exception& error) override {
    constexpr int out_of_range = 406;
    if (error.id == out_of_range) throw JsonFault(text::concat("number out of range before byte ", position));
    throw JsonFault(syntax_fault(error.what()));
  }

 private:
  template <typename Content>
  JsonValue& add(Content&& content) {
    JsonValue value{std::forward<Content>(content)};
    if (open_.empty()) return root_ = std::move(value);
    if (auto* array = std::get_if<JsonValue::Array>(&open_.back()->content))
      return array->emplace_back(std::move(value));
    return std::get<JsonValue::Object>(open_.back()->content).emplace_back(std::move(name_), std::move(value)).second;
  }
  template <typename Content>
  bool put(Content&& content) {
    add(std::forward<Content>(content));
    return true;
  }
  template <typename Content>
  bool open(Content&& content) {
    if (open_.size() == max_json_depth) throw JsonFault(text::concat("more than ", max_json_depth, " nested values"));
    open_.push_back(&add(std::forward<Content>(content)));
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }

  JsonValue root_;
  std::vector<JsonValue*> open_;  ///< from the root to the innermost; only the innermost grows, so none of them moves
  std::string name_;
};

struct Describe {
  std::string operator()(std::nullptr_t) const { return "null"; }
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(std::uint64_t value) const { return std::to_string(value); }
  std::string operator()(std::int64_t value) const { return std::to_string(value); }
  std::string operator()(double value) const { return nlohmann::json(value).dump(); }
  std::string operator()(const std::string& value) const { return "the string " + quoted_json(value); }
  std::string operator()(const JsonValue::Array& /*value*/) const { return "a list"; }
  std::string operator()(const JsonValue::Object& /*value*/) const { return "an object"; }
};

}  // namespace

std::string JsonValue::described() const { return std::visit(Describe{}, content); }

void JsonValue::refuse(std::string_view expected) const {
  throw JsonFault(text::concat("expected ", expected, ", got ", described()));
}

std::string quoted_json(const std::string& text) {
  constexpr int on_one_line = -1;
  constexpr bool ascii = true;
  return nlohmann::json(text).dump(on_one_line, ' ', ascii, nlohmann::json::error_handler_t::replace);
}

JsonValue parse_strict_json(std::string_view text) {
  // nlohmann skips a byte order mark and takes a zero byte for the end of the text.
  if (text.starts_with("\xef\xbb\xbf")) throw JsonFault("the text begins with a byte order mark");
  if (const auto zero = text.find('\0'); zero != std::string_view::npos)
    throw JsonFault(text::concat("zero byte at byte ", zero));
  JsonTreeBuilder builder;
  nlohmann::json::sax_parse(text, &builder);
  return builder.take();
}

}  // namespace hortator::formats
