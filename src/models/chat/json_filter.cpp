#include "models/chat/json_filter.hpp"

#include <utility>

#include "core/text/text.hpp"
#include "models/chat/arguments.hpp"

namespace hortator::models::chat {
namespace {

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

}  // namespace

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

}  // namespace hortator::models::chat
