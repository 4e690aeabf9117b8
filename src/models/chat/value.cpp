#include "models/chat/value.hpp"

#include <algorithm>
#include <cmath>
#include <hortator/error.hpp>

#include "core/text/text.hpp"
#include "core/text/utf8.hpp"

namespace hortator::models::chat {
namespace {

const char* type_of(const Value& value) {
  if (!value.is_defined) return "an undefined value";
  if (value.function) return "a function";
  return value.names ? "a namespace" : value.json.type_name();
}

std::string quoted(const std::string& text) {
  const bool has_single = text.find('\'') != std::string::npos, has_double = text.find('"') != std::string::npos;
  const char quote = has_single && !has_double ? '"' : '\'';
  std::string all(1, quote);
  for (const auto c : text) {
    if (c == quote || c == '\\') all += '\\';
    if (c == '\n') {
      all += "\\n";
    } else if (c == '\t') {
      all += "\\t";
    } else if (c == '\r') {
      all += "\\r";
    } else {
      all += c;
    }
  }
  return all + quote;
}

/// A place in a list, counted from its end if it is negative.
std::ptrdiff_t place(std::int64_t index, std::size_t size) {
  return static_cast<std::ptrdiff_t>(index < 0 ? index + static_cast<std::int64_t>(size) : index);
}

std::int64_t floor_divided(std::int64_t a, std::int64_t b) {
  const auto quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

Value of_integers(const std::string& op, std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  if (op == "+" && !__builtin_add_overflow(a, b, &result)) return Json(result);
  if (op == "-" && !__builtin_sub_overflow(a, b, &result)) return Json(result);
  if (op == "*" && !__builtin_mul_overflow(a, b, &result)) return Json(result);
  if (op == "+" || op == "-" || op == "*") fail("A whole number became too large");
  if (b == 0) fail("Division by zero");
  if (op == "/") return Json(static_cast<double>(a) / static_cast<double>(b));
  if (b == -1) return op == "//" ? of_integers("-", 0, a) : Value(Json(0));
  const auto quotient = floor_divided(a, b);
  return op == "//" ? Json(quotient) : Json(a - quotient * b);
}

Value of_numbers(const std::string& op, double a, double b) {
  if (op == "+") return Json(a + b);
  if (op == "-") return Json(a - b);
  if (op == "*") return Json(a * b);
  if (b == 0) fail("Division by zero");
  if (op == "/") return Json(a / b);
  const auto quotient = std::floor(a / b);
  return op == "//" ? Json(quotient) : Json(a - quotient * b);
}

void add_size(const Json& json, std::size_t& size, int level) {
  constexpr int max_levels = 128;
  constexpr std::size_t max_size = std::size_t{1} << 24;  // as of the messages
  if (level > max_levels) fail("a list is nested too deeply");
  size += json.is_string() ? json.get_ref<const std::string&>().size() + 1 : 1;
  if (size > max_size) fail("a text or a list grows without bound");
  if (!json.is_structured()) return;
  for (const auto& one : json) add_size(one, size, level + 1);
}

}  // namespace

Value Value::of_function(Function function) {
  Value value;
  value.is_defined = true;
  value.function = std::move(function);
  return value;
}

Value Value::of_namespace() {
  Value value;
  value.is_defined = true;
  value.names = std::make_shared<std::map<std::string, Value>>();
  return value;
}

void fail(const std::string& what, const std::string& why) {
  throw UsageError({.what = text::concat("The chat template: ", what), .why = why});
}

void require_bounded(const Value& value) {
  std::size_t size = 0;
  add_size(value.json, size, 0);
}

bool is_true(const Value& value) {
  if (!value.is_plain()) return value.is_defined;
  const auto& json = value.json;
  if (json.is_boolean()) return json.get<bool>();
  if (json.is_number()) return json.get<double>() != 0;
  if (json.is_string()) return !value.string().empty();
  return !json.is_null() && !json.empty();
}

std::string representation(const Json& json) {
  if (json.is_null()) return "None";
  if (json.is_boolean()) return json.get<bool>() ? "True" : "False";
  if (json.is_string()) return quoted(json.get<std::string>());
  if (!json.is_structured()) return json.dump();
  std::vector<std::string> parts;
  for (const auto& [key, one] : json.items())
    parts.push_back(json.is_object() ? quoted(key) + ": " + representation(one) : representation(one));
  const auto all = text::join(parts, ", ");
  return json.is_object() ? "{" + all + "}" : "[" + all + "]";
}

std::string text_of(const Value& value) {
  if (!value.is_defined) return "";
  if (!value.is_plain()) fail(text::concat(type_of(value), " cannot be printed"));
  if (value.is_string()) return value.string();
  auto text = representation(value.json);
  if (!value.is_tuple) return text;
  return "(" + text.substr(1, text.size() - 2) + (value.json.size() == 1 ? ",)" : ")");
}

std::vector<std::string> characters(const std::string& utf8) {
  std::vector<std::string> all;
  for (const auto c : utf8) {
    if (!text::continues_character(c) || all.empty()) all.emplace_back();
    all.back().push_back(c);
  }
  return all;
}

std::vector<Value> elements(const Value& value) {
  std::vector<Value> all;
  if (!value.is_defined) return all;
  if (value.is_string()) {
    for (auto& character : characters(value.string())) all.emplace_back(Json(std::move(character)));
    return all;
  }
  if (!value.is_plain() || !value.json.is_structured()) fail(text::concat(type_of(value), " has no elements"));
  for (const auto& [key, one] : value.json.items()) all.emplace_back(value.json.is_object() ? Json(key) : one);
  return all;
}

bool equal(const Value& a, const Value& b) {
  if (!a.is_plain() || !b.is_plain()) return !a.is_defined && !b.is_defined;
  const auto number = [](const Json& json) { return json.is_boolean() ? Json(json.get<bool>() ? 1 : 0) : json; };
  return number(a.json) == number(b.json);
}

bool less(const Value& a, const Value& b) {
  const bool fits =
      a.is_plain() && b.is_plain() && ((a.json.is_number() && b.json.is_number()) || (a.is_string() && b.is_string()));
  if (!fits) fail(text::concat(type_of(a), " and ", type_of(b), " cannot be compared"));
  return a.json < b.json;
}

bool contains(const Value& container, const Value& item) {
  if (container.is_string()) {
    if (!item.is_string()) fail("'in' a string: expected a string");
    return container.string().find(item.string()) != std::string::npos;
  }
  const auto all = elements(container);
  return std::any_of(all.begin(), all.end(), [&](const Value& one) { return equal(one, item); });
}

Value item_of(const Value& value, const Value& key) {
  if (!value.is_defined) fail(text::concat("An undefined value has no ", representation(key.json)));
  if (value.names) {
    const auto found = key.is_string() ? value.names->find(key.string()) : value.names->end();
    return found == value.names->end() ? Value() : found->second;
  }
  if (!value.is_plain()) return {};
  if (value.json.is_object()) {
    if (!key.is_string()) return {};
    const auto found = value.json.find(key.string());
    return found == value.json.end() ? Value() : Value(*found);
  }
  if (!key.is_plain() || !key.json.is_number_integer()) return {};
  const auto all = value.json.is_array() || value.is_string() ? elements(value) : std::vector<Value>();
  const auto at = place(key.json.get<std::int64_t>(), all.size());
  return at >= 0 && static_cast<std::size_t>(at) < all.size() ? all[static_cast<std::size_t>(at)] : Value();
}

Value slice_of(const Value& value, const Value& begin, const Value& end, const Value& step) {
  const auto all = elements(value);
  const auto size = static_cast<std::ptrdiff_t>(all.size());
  const auto stride = step.is_defined ? integer_of(step, "a slice's step") : 1;
  if (stride != 1 && stride != -1) fail("A slice's step: only 1 and -1 are supported");
  const auto limited = [&](const Value& bound, std::ptrdiff_t absent) {
    if (!bound.is_defined || bound.json.is_null()) return absent;
    const auto at = place(integer_of(bound, "a slice's bound"), all.size());
    return stride > 0 ? std::clamp<std::ptrdiff_t>(at, 0, size) : std::clamp<std::ptrdiff_t>(at, -1, size - 1);
  };
  const auto first = limited(begin, stride > 0 ? 0 : size - 1), last = limited(end, stride > 0 ? size : -1);
  auto list = Json::array();
  std::string text;
  for (auto i = first; stride > 0 ? i < last : i > last; i += stride) {
    const auto& one = all[static_cast<std::size_t>(i)];
    if (value.is_string()) {
      text += one.string();
    } else {
      list.push_back(one.json);
    }
  }
  Value part = value.is_string() ? Json(text) : list;
  part.is_tuple = value.is_tuple;
  return part;
}

std::int64_t integer_of(const Value& value, const char* what) {
  if (value.is_plain() && value.json.is_boolean()) return value.json.get<bool>() ? 1 : 0;
  if (!value.is_plain() || !value.json.is_number_integer())
    fail(text::concat(what, ": expected a whole number, got ", type_of(value)));
  return value.json.get<std::int64_t>();
}

Value arithmetic(const std::string& op, const Value& a, const Value& b) {
  if (op == "~") return Json(text_of(a) + text_of(b));
  if (op == "+" && a.is_string() && b.is_string()) return Json(a.string() + b.string());
  if (op == "+" && a.is_plain() && b.is_plain() && a.json.is_array() && b.json.is_array()) {
    if (a.is_tuple != b.is_tuple) fail("'+' does not take a list and a tuple");
    Value all = a;
    all.json.insert(all.json.end(), b.json.begin(), b.json.end());
    return all;
  }
  const auto is_number = [](const Value& x) { return x.is_plain() && (x.json.is_number() || x.json.is_boolean()); };
  if (!is_number(a) || !is_number(b)) fail(text::concat("'", op, "' does not take ", type_of(a), " and ", type_of(b)));
  if (a.json.is_number_float() || b.json.is_number_float())
    return of_numbers(op, a.json.get<double>(), b.json.get<double>());
  return of_integers(op, integer_of(a, "a number"), integer_of(b, "a number"));
}

}  // namespace hortator::models::chat
