// The filters, tests and methods of chat templates.
#include <algorithm>
#include <cmath>
#include <utility>

#include "core/text/text.hpp"
#include "models/chat/arguments.hpp"
#include "models/chat/program.hpp"
#include "models/chat/strings.hpp"

namespace hortator::models::chat {
namespace {

template <typename Entry>
const Entry& entry_of(const std::map<std::string, Entry>& known, const std::string& name, const char* kind) {
  const auto found = known.find(name);
  if (found != known.end()) return found->second;
  std::vector<std::string> names;
  for (const auto& [one, entry] : known) names.push_back(one);
  fail(text::concat("the ", kind, " ", text::quote(name), " is not supported; there are ", text::join(names, ", ")));
}

Json list_of(const std::vector<Value>& values) {
  auto all = Json::array();
  for (const auto& one : values) all.push_back(one.json);
  return all;
}

Json list_of(const std::vector<std::string>& texts) {
  auto all = Json::array();
  for (const auto& one : texts) all.push_back(one);
  return all;
}

Value joined(const Value& value, const CallArguments& arguments) {
  const auto attribute = argument(arguments, 1, "attribute");
  const auto separator = string_argument(arguments, 0, "d", "");
  std::vector<std::string> parts;
  std::size_t size = 0;
  for (const auto& one : elements(value)) {
    parts.push_back(text_of(attribute.is_defined ? item_of(one, attribute) : one));
    size += parts.back().size() + separator.size();
    if (size > max_text) fail("'join' makes a text too long");
  }
  return Json(text::join(parts, separator));
}

Value with_default(const Value& value, const CallArguments& arguments) {
  const bool replaces_false = is_true(argument(arguments, 1, "boolean"));
  if (value.is_defined && (!replaces_false || is_true(value))) return value;
  const auto other = argument(arguments, 0, "default_value");
  return other.is_defined ? other : Value(Json(""));
}

Value pairs_of(const Value& value) {
  auto all = Json::array();
  if (value.is_defined && !(value.is_plain() && value.json.is_object())) fail("'items' takes an object");
  if (value.is_defined)
    for (const auto& [key, one] : value.json.items()) all.push_back(Json::array({key, one}));
  return all;
}

/// select, reject, selectattr, rejectattr: the elements for which a test holds, or does not.
Value selected(const Value& value, const CallArguments& arguments, bool by_attribute, bool keeps) {
  auto rest = arguments;
  Value attribute;
  const auto take = [&] {
    if (rest.positional.empty()) return Value();
    auto first = rest.positional.front();
    rest.positional.erase(rest.positional.begin());
    return first;
  };
  if (by_attribute) attribute = take();
  const auto test = take();
  std::vector<Value> kept;
  for (const auto& one : elements(value)) {
    const auto tested_value = by_attribute ? item_of(one, attribute) : one;
    const bool holds = test.is_defined ? tested(text_of(test), tested_value, rest) : is_true(tested_value);
    if (holds == keeps) kept.push_back(one);
  }
  return list_of(kept);
}

/// map('trim') or map(attribute='role')
Value mapped(const Value& value, const CallArguments& arguments) {
  auto rest = arguments;
  const auto attribute = argument(arguments, arguments.positional.size(), "attribute");
  std::vector<Value> all;
  std::string filter;
  if (!attribute.is_defined) {
    if (rest.positional.empty()) fail("'map': expected a filter or an attribute");
    filter = text_of(rest.positional.front());
    rest.positional.erase(rest.positional.begin());
  }
  for (const auto& one : elements(value))
    all.push_back(attribute.is_defined ? item_of(one, attribute) : filtered(filter, one, rest));
  return list_of(all);
}

Value to_integer(const Value& value) {
  if (value.is_plain() && value.json.is_number_integer()) return value;
  if (value.is_plain() && value.json.is_number()) {
    const auto number = value.json.get<double>();
    constexpr double end = 9223372036854775808.0;  // 2^63
    if (!(number > -end && number < end)) fail("'int': the number is too large");
    return Json(static_cast<std::int64_t>(number));
  }
  const auto text = stripped(text_of(value), white_space, true, true);
  char* end = nullptr;
  const auto number = std::strtoll(text.c_str(), &end, 10);
  return Json(!text.empty() && *end == '\0' ? std::int64_t{number} : std::int64_t{0});
}

Value absolute(const Value& value) { return less(value, Json(0)) ? arithmetic("-", Json(0), value) : value; }

Value reversed(const Value& value) {
  auto all = elements(value);
  std::ranges::reverse(all);
  if (!value.is_string()) return list_of(all);
  std::string text;
  for (const auto& one : all) text += one.string();
  return Json(text);
}

void refuse_arguments(const CallArguments& arguments, const char* filter) {
  if (!arguments.positional.empty() || !arguments.named.empty())
    fail(text::concat("'", filter, "' is supported without arguments only"));
}

/// As Jinja compares values by default.
Value without_case(const Value& value) {
  return value.is_string() ? Value(Json(in_case(value.string(), LetterCase::lower))) : value;
}

Value sorted(const Value& value, const CallArguments& arguments) {
  refuse_arguments(arguments, "sort");
  auto all = elements(value);
  std::ranges::stable_sort(all, [](const Value& a, const Value& b) { return less(without_case(a), without_case(b)); });
  return list_of(all);
}

Value unique(const Value& value, const CallArguments& arguments) {
  refuse_arguments(arguments, "unique");
  std::vector<Value> all;
  const auto is_same = [](const Value& a, const Value& b) { return equal(without_case(a), without_case(b)); };
  for (const auto& one : elements(value))
    if (std::ranges::none_of(all, [&](const auto& kept) { return is_same(kept, one); })) all.push_back(one);
  return list_of(all);
}

Value edge(const Value& value, bool is_first) {
  const auto all = elements(value);
  return all.empty() ? Value() : is_first ? all.front() : all.back();
}

Value indented(const Value& value, const CallArguments& arguments) {
  const auto width = argument(arguments, 0, "width");
  const auto spaces =
      width.is_string() ? width.string()
      : width.is_defined
          ? std::string(static_cast<std::size_t>(std::clamp<std::int64_t>(integer_of(width, "width"), 0, 256)), ' ')
          : std::string(4, ' ');
  const bool has_first = is_true(argument(arguments, 1, "first"));
  const auto lines = parts_of(text_of(value), "\n", -1);
  std::string all;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (i > 0) all += "\n";
    if ((i > 0 && !lines[i].empty()) || (i == 0 && has_first)) all += spaces;
    all += lines[i];
  }
  return Json(all);
}

Function string_method(const std::string& text, const std::string& name) {
  const auto strip = [text](bool left, bool right) {
    return [=](const CallArguments& a) -> Value {
      return Json(stripped(text, string_argument(a, 0, "chars", std::string(white_space)), left, right));
    };
  };
  const auto in_letter_case = [text](LetterCase letter_case) {
    return [=](const CallArguments&) -> Value { return Json(in_case(text, letter_case)); };
  };
  if (name == "strip") return strip(true, true);
  if (name == "lstrip") return strip(true, false);
  if (name == "rstrip") return strip(false, true);
  if (name == "upper") return in_letter_case(LetterCase::upper);
  if (name == "lower") return in_letter_case(LetterCase::lower);
  if (name == "title") return in_letter_case(LetterCase::title);
  if (name == "capitalize") return in_letter_case(LetterCase::capitalised);
  if (name == "startswith")
    return
        [text](const CallArguments& a) -> Value { return Json(text.starts_with(string_argument(a, 0, "prefix", ""))); };
  if (name == "endswith")
    return
        [text](const CallArguments& a) -> Value { return Json(text.ends_with(string_argument(a, 0, "suffix", ""))); };
  if (name == "split") {
    return [text](const CallArguments& a) -> Value {
      return list_of(parts_of(text, string_argument(a, 0, "sep", ""), count_argument(a, 1, "maxsplit")));
    };
  }
  if (name == "replace") {
    return [text](const CallArguments& a) -> Value {
      return Json(replaced(text, string_argument(a, 0, "old", ""), string_argument(a, 1, "new", ""),
                           count_argument(a, 2, "count")));
    };
  }
  if (name == "find") {
    return [text](const CallArguments& a) -> Value {
      const auto at = text.find(string_argument(a, 0, "sub", ""));
      return Json(at == std::string::npos ? std::int64_t{-1}
                                          : static_cast<std::int64_t>(characters(text.substr(0, at)).size()));
    };
  }
  if (name == "join") {
    return [text](const CallArguments& a) -> Value {
      return joined(argument(a, 0, "iterable"), {.positional = {Json(text)}, .named = {}});
    };
  }
  return {};
}

Function object_method(const Json& object, const std::string& name) {
  if (name == "items") return [object](const CallArguments&) { return pairs_of(object); };
  if (name == "keys") return [object](const CallArguments&) -> Value { return list_of(elements(object)); };
  if (name == "values") {
    return [object](const CallArguments&) -> Value {
      auto all = Json::array();
      for (const auto& [key, one] : object.items()) all.push_back(one);
      return all;
    };
  }
  if (name == "get") {
    return [object](const CallArguments& a) {
      auto found = item_of(object, argument(a, 0, "key"));
      if (found.is_defined) return found;
      const auto absent = argument(a, 1, "default");
      return absent.is_defined ? absent : Value(Json());
    };
  }
  return {};
}

/// JSON as Python's json.dumps writes it: with spaces after commas and colons, or indented.
std::string dumped(const Json& json, int indent, int level = 0) {
  if (!json.is_structured() || json.empty())
    return json.dump(-1, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace);
  const auto line = [&](int deep) {
    return indent < 0 ? "" : "\n" + std::string(static_cast<std::size_t>(indent * deep), ' ');
  };
  std::string all = (json.is_object() ? "{" : "[") + line(level + 1);
  bool is_first = true;
  for (const auto& [key, one] : json.items()) {
    if (!is_first) all += (indent < 0 ? ", " : ",") + line(level + 1);
    is_first = false;
    if (json.is_object()) all += dumped(key, indent) + ": ";
    all += dumped(one, indent, level + 1);
  }
  return all + line(level) + (json.is_object() ? "}" : "]");
}

/// The filter `tojson`, with the arguments that transformers gives it: ensure_ascii, indent, separators, sort_keys.
Value to_json(const Value& value, const CallArguments& arguments) {
  if (!value.is_plain()) fail("'tojson' takes values of JSON only");
  using Place = std::pair<std::size_t, const char*>;
  for (const auto& [at, name] : {Place(0, "ensure_ascii"), Place(2, "separators"), Place(3, "sort_keys")}) {
    if (is_true(argument(arguments, at, name))) fail(text::concat("'tojson': '", name, "' is not supported"));
  }
  const auto indent = argument(arguments, 1, "indent");
  const bool is_indented = indent.is_defined && !indent.json.is_null();
  const auto width = is_indented ? integer_of(indent, "indent") : -1;
  if (width > 16) fail("'tojson': expected an indent up to 16");
  return Json(dumped(value.json, static_cast<int>(width)));
}

}  // namespace

Value filtered(const std::string& name, const Value& value, const CallArguments& arguments) {
  using Filter = Value (*)(const Value&, const CallArguments&);
  static const std::map<std::string, Filter> known = {
      {"trim",
       [](const Value& v, const CallArguments& a) {
         return Value(Json(stripped(text_of(v), string_argument(a, 0, "chars", std::string(white_space)), true, true)));
       }},
      {"length", [](const Value& v, const CallArguments&) { return Value(Json(elements(v).size())); }},
      {"count", [](const Value& v, const CallArguments&) { return Value(Json(elements(v).size())); }},
      {"upper",
       [](const Value& v, const CallArguments&) { return Value(Json(in_case(text_of(v), LetterCase::upper))); }},
      {"lower",
       [](const Value& v, const CallArguments&) { return Value(Json(in_case(text_of(v), LetterCase::lower))); }},
      {"title",
       [](const Value& v, const CallArguments&) { return Value(Json(in_case(text_of(v), LetterCase::title))); }},
      {"capitalize",
       [](const Value& v, const CallArguments&) { return Value(Json(in_case(text_of(v), LetterCase::capitalised))); }},
      {"replace",
       [](const Value& v, const CallArguments& a) {
         return Value(Json(replaced(text_of(v), string_argument(a, 0, "old", ""), string_argument(a, 1, "new", ""),
                                    count_argument(a, 2, "count"))));
       }},
      {"string", [](const Value& v, const CallArguments&) { return Value(Json(text_of(v))); }},
      {"safe", [](const Value& v, const CallArguments&) { return v; }},
      {"int", [](const Value& v, const CallArguments&) { return to_integer(v); }},
      {"abs", [](const Value& v, const CallArguments&) { return absolute(v); }},
      {"list", [](const Value& v, const CallArguments&) { return Value(list_of(elements(v))); }},
      {"first", [](const Value& v, const CallArguments&) { return edge(v, true); }},
      {"last", [](const Value& v, const CallArguments&) { return edge(v, false); }},
      {"reverse", [](const Value& v, const CallArguments&) { return reversed(v); }},
      {"sort", sorted},
      {"unique", unique},
      {"items", [](const Value& v, const CallArguments&) { return pairs_of(v); }},
      {"select", [](const Value& v, const CallArguments& a) { return selected(v, a, false, true); }},
      {"reject", [](const Value& v, const CallArguments& a) { return selected(v, a, false, false); }},
      {"selectattr", [](const Value& v, const CallArguments& a) { return selected(v, a, true, true); }},
      {"rejectattr", [](const Value& v, const CallArguments& a) { return selected(v, a, true, false); }},
      {"map", mapped},
      {"join", joined},
      {"default", with_default},
      {"d", with_default},
      {"tojson", to_json},
      {"indent", indented}};
  return entry_of(known, name, "filter")(value, arguments);
}

bool tested(const std::string& name, const Value& value, const CallArguments& arguments) {
  const auto plain = [&](auto&& holds) { return value.is_plain() && holds(value.json); };
  const auto other = argument(arguments, 0, "other");
  using Test = std::function<bool()>;
  const std::map<std::string, Test> known = {
      {"defined", [&] { return value.is_defined; }},
      {"undefined", [&] { return !value.is_defined; }},
      {"none", [&] { return plain([](const Json& json) { return json.is_null(); }); }},
      {"string", [&] { return value.is_string(); }},
      {"number", [&] { return plain([](const Json& json) { return json.is_number() || json.is_boolean(); }); }},
      {"integer", [&] { return plain([](const Json& json) { return json.is_number_integer(); }); }},
      {"float", [&] { return plain([](const Json& json) { return json.is_number_float(); }); }},
      {"boolean", [&] { return plain([](const Json& json) { return json.is_boolean(); }); }},
      {"true", [&] { return plain([](const Json& json) { return json.is_boolean() && json.get<bool>(); }); }},
      {"false", [&] { return plain([](const Json& json) { return json.is_boolean() && !json.get<bool>(); }); }},
      {"mapping", [&] { return plain([](const Json& json) { return json.is_object(); }); }},
      {"iterable",
       [&] {
         return !value.is_defined || plain([](const Json& json) { return json.is_structured() || json.is_string(); });
       }},
      {"sequence",
       [&] {
         return !value.is_defined || plain([](const Json& json) { return json.is_structured() || json.is_string(); });
       }},
      {"callable", [&] { return static_cast<bool>(value.function); }},
      {"odd", [&] { return integer_of(value, "odd") % 2 != 0; }},
      {"even", [&] { return integer_of(value, "even") % 2 == 0; }},
      {"in", [&] { return contains(other, value); }},
      {"==", [&] { return equal(value, other); }},
      {"eq", [&] { return equal(value, other); }},
      {"equalto", [&] { return equal(value, other); }},
      {"ne", [&] { return !equal(value, other); }},
      {"divisibleby", [&] { return integer_of(arithmetic("%", value, other), "divisibleby") == 0; }}};
  return entry_of(known, name, "test")();
}

Value method_of(const Value& value, const std::string& name) {
  if (!value.is_plain()) return {};
  auto function = value.is_string()        ? string_method(value.string(), name)
                  : value.json.is_object() ? object_method(value.json, name)
                                           : Function();
  return function ? Value::of_function(std::move(function)) : Value();
}

}  // namespace hortator::models::chat
