#include "exported/file/field.hpp"

#include <limits>

#include "core/text/text.hpp"
#include "exported/file/fault.hpp"

namespace hortator::exported {

using formats::JsonValue;

namespace {

template <typename Content>
const Content& content_of(const Field& field, const JsonValue& value, std::string_view expected) {
  if (const auto* content = std::get_if<Content>(&value.content)) return *content;
  field.refuse(text::concat("expected ", expected, ", got ", value.described()));
}

}  // namespace

void Field::refuse(std::string_view why) const {
  throw ExportFault(text::concat(position_.empty() ? "the text" : position_, ": ", why));
}

void Field::refuse_feature(const std::string& feature) const {
  throw ExportFault(text::concat(position_, ": ", feature, " is not supported"),
                    "export the model without it, or ask for it with the file at hand");
}

std::string Field::below(std::string_view name) const {
  return position_.empty() ? std::string(name) : text::concat(position_, ".", name);
}

bool Field::is_null() const { return std::holds_alternative<std::nullptr_t>(value_.content); }

const JsonValue* Field::find(std::string_view name) const {
  for (const auto& [key, value] : content_of<JsonValue::Object>(*this, value_, "an object")) {
    if (key == name) return &value;
  }
  return nullptr;
}

bool Field::has(std::string_view name) const {
  const auto* value = find(name);
  return value != nullptr && !std::holds_alternative<std::nullptr_t>(value->content);
}

Field Field::at(std::string_view name) const {
  const auto* value = find(name);
  if (value == nullptr) refuse(text::concat("the member ", text::quote(name), " is missing"));
  return Field(*value, below(name));
}

std::vector<Field> Field::items() const {
  std::vector<Field> items;
  for (const auto& item : content_of<JsonValue::Array>(*this, value_, "a list"))
    items.emplace_back(item, text::concat(position_, "[", items.size(), "]"));
  return items;
}

std::vector<std::pair<std::string, Field>> Field::members() const {
  std::vector<std::pair<std::string, Field>> members;
  for (const auto& [name, value] : content_of<JsonValue::Object>(*this, value_, "an object"))
    members.emplace_back(name, Field(value, below(name)));
  return members;
}

std::pair<std::string, Field> Field::choice() const {
  const auto& object = content_of<JsonValue::Object>(*this, value_, "an object");
  if (object.size() != 1) refuse(text::concat("expected one member, got ", object.size()));
  return {object.front().first, Field(object.front().second, below(object.front().first))};
}

std::int64_t Field::integer() const {
  if (const auto* number = std::get_if<std::int64_t>(&value_.content)) return *number;
  const auto number = content_of<std::uint64_t>(*this, value_, "a whole number");
  if (number > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
    refuse(text::concat("the number ", number, " needs more than 64 bits with a sign"));
  return static_cast<std::int64_t>(number);
}

double Field::real() const {
  if (const auto* word = std::get_if<std::string>(&value_.content)) {
    constexpr auto infinity = std::numeric_limits<double>::infinity();
    if (*word == "Infinity") return infinity;
    if (*word == "-Infinity") return -infinity;
    if (*word == "NaN") return std::numeric_limits<double>::quiet_NaN();
  }
  if (const auto* number = std::get_if<double>(&value_.content)) return *number;
  return static_cast<double>(integer());
}

bool Field::flag() const { return content_of<bool>(*this, value_, "true or false"); }

const std::string& Field::text() const { return content_of<std::string>(*this, value_, "a text"); }

}  // namespace hortator::exported
