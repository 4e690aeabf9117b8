#pragma once

#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

/// Chat templates: the part of Jinja that they use.
namespace hortator::models::chat {

using Json = nlohmann::ordered_json;
struct Value;

constexpr std::size_t max_text = std::size_t{1} << 28;  ///< bytes of a text

/// The arguments of a call.
struct CallArguments {
  std::vector<Value> positional;
  std::map<std::string, Value> named;
  std::vector<std::string> order = {};  ///< of the named ones in the call
};
using Function = std::function<Value(const CallArguments&)>;

/// A value of a template: one that JSON has, or nothing, a namespace or a function.
struct Value {
  Value() = default;
  Value(Json json) : json(std::move(json)), is_defined(true) {}  // NOLINT(google-explicit-constructor)

  static Value of_function(Function function);
  static Value of_namespace();

  bool is_plain() const { return is_defined && !function && !names; }
  bool is_string() const { return is_plain() && json.is_string(); }
  const std::string& string() const { return json.get_ref<const std::string&>(); }

  Json json = {};
  bool is_defined = false;
  bool is_tuple = false;  ///< a list that prints as (1, 2); one within a list has become a list
  Function function = {};
  std::shared_ptr<std::map<std::string, Value>> names = {};  ///< of a namespace
};

/// Throws UsageError: the template cannot be read, or does not fit the messages.
[[noreturn]] void fail(const std::string& what, const std::string& why = "");

// As Python does it.
bool is_true(const Value& value);
/// Throws for a text or a list that is too large or nested too deeply to be kept: a template could let it grow for
/// ever.
void require_bounded(const Value& value);
std::string text_of(const Value& value);  ///< str()
std::string representation(const Json& json);
std::vector<Value> elements(const Value& value);  ///< of a list, the keys of an object, the characters of a string
std::vector<std::string> characters(const std::string& utf8);
bool equal(const Value& a, const Value& b);
bool less(const Value& a, const Value& b);
bool contains(const Value& container, const Value& item);
Value item_of(const Value& value, const Value& key);  ///< undefined if it does not have the key
Value slice_of(const Value& value, const Value& begin, const Value& end, const Value& step);
Value arithmetic(const std::string& op, const Value& a, const Value& b);
std::int64_t integer_of(const Value& value, const char* what);

}  // namespace hortator::models::chat
