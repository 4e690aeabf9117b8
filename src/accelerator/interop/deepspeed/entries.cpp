#include "accelerator/interop/deepspeed/entries.hpp"

#include <cmath>
#include <hortator/error.hpp>

#include "core/text/text.hpp"

namespace hortator::accelerator {
namespace {

bool is_auto(const formats::JsonValue& value) {
  const auto* string = std::get_if<std::string>(&value.content);
  return string != nullptr && *string == "auto";
}

}  // namespace

std::optional<double> DeepspeedEntries::number(const std::string& path) {
  const auto* value = take(path);
  if (value == nullptr || is_auto(*value)) return {};
  if (const auto* one = std::get_if<std::uint64_t>(&value->content)) return static_cast<double>(*one);
  if (const auto* one = std::get_if<std::int64_t>(&value->content)) return static_cast<double>(*one);
  if (const auto* one = std::get_if<double>(&value->content)) return *one;
  refuse(path, *value, "a number is needed, or \"auto\"");
}

std::optional<std::int64_t> DeepspeedEntries::count(const std::string& path, std::int64_t min) {
  const auto value = number(path);
  if (!value) return {};
  constexpr double max = 0x1p53;  // up to which a double holds every whole number
  if (*value >= static_cast<double>(min) && *value <= max && *value == std::floor(*value))
    return static_cast<std::int64_t>(*value);
  throw UsageError({.what = text::concat(file_, ": ", path, " is ", *value),
                    .hint = text::concat("a whole number from ", min, " on is needed, or \"auto\"")});
}

std::optional<bool> DeepspeedEntries::onoff(const std::string& path) {
  const auto* value = take(path);
  if (value == nullptr || is_auto(*value)) return {};
  if (const auto* one = std::get_if<bool>(&value->content)) return *one;
  refuse(path, *value, "true or false is needed, or \"auto\"");
}

bool DeepspeedEntries::is_true(const std::string& path) const {
  const auto found = values_.find(path);
  const auto* value = found == values_.end() ? nullptr : std::get_if<bool>(&found->second.content);
  return value != nullptr && *value;
}

bool DeepspeedEntries::is_automatic(const std::string& path) const {
  const auto found = values_.find(path);
  return found != values_.end() && is_auto(found->second);
}

std::string DeepspeedEntries::text(const std::string& path, const char* expected) {
  const auto* value = take(path);
  if (value == nullptr) return {};
  if (const auto* string = std::get_if<std::string>(&value->content)) return *string;
  refuse(path, *value, expected);
}

const formats::JsonValue* DeepspeedEntries::take(const std::string& path) {
  const auto found = values_.find(path);
  if (found == values_.end()) return nullptr;
  read_.note(path);
  const bool is_null = std::holds_alternative<std::nullptr_t>(found->second.content);
  return is_null ? nullptr : &found->second;  // for DeepSpeed null is not set
}

void DeepspeedEntries::refuse(const std::string& path, const formats::JsonValue& value, const char* expected) const {
  throw UsageError({.what = text::concat(file_, ": ", path, " is ", value.described()), .hint = expected});
}

void DeepspeedEntries::add(const formats::JsonValue& value, const std::string& path) {
  const auto* object = std::get_if<formats::JsonValue::Object>(&value.content);
  if (object == nullptr) {
    values_.insert_or_assign(path, value);
    return;
  }
  for (const auto& [name, member] : *object) add(member, path.empty() ? name : path + "." + name);
}

}  // namespace hortator::accelerator
