#include "accelerator/interop/accelerate/python_dict.hpp"

#include <algorithm>
#include <hortator/error.hpp>
#include <iterator>

#include "core/text/text.hpp"

namespace hortator::accelerator {

using formats::PickleValue;

namespace {

[[noreturn]] void refuse_name(const std::string& name) {
  throw UsageError({.what = text::concat("A value for Python has the name ", text::quote(name), " twice"),
                    .why = "in Python's dict it is a value, or a dict of the values whose names begin with it",
                    .hint = "save one of them under another name"});
}

/// `path` is within the dict of `items`.
void put_into(PickleValue::Dict& items, const std::string& path, PickleValue value) {
  const auto slash = path.find('/');
  const auto name = path.substr(0, slash);
  auto found = std::ranges::find_if(items, [&](const auto& item) {
    const auto* key = std::get_if<std::string>(&item.first.content);
    return key != nullptr && *key == name;
  });
  if (slash == std::string::npos) {
    if (found != items.end()) refuse_name(name);
    items.emplace_back(PickleValue{.content = name}, std::move(value));
    return;
  }
  if (found == items.end()) {
    items.emplace_back(PickleValue{.content = name}, PickleValue{.content = PickleValue::Dict()});
    found = std::prev(items.end());
  }
  auto* inner = std::get_if<PickleValue::Dict>(&found->second.content);
  if (inner == nullptr) refuse_name(name);
  put_into(*inner, path.substr(slash + 1), std::move(value));
}

}  // namespace

void PythonDict::put_at(const std::string& path, PickleValue value) { put_into(items_, path, std::move(value)); }

PickleValue tuple_of(PickleValue::List items) { return {.content = PickleValue::Tuple{std::move(items)}}; }

PickleValue tensor_value(const std::string& storage, const formats::TensorSpec& spec) {
  return {.content = formats::PickledTensor{.spec = spec, .storage = storage}};
}

PickleValue python_value(const StateDict::Value& value) {
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return {.content = *whole};
  if (const auto* real = std::get_if<double>(&value)) return {.content = *real};
  if (const auto* text = std::get_if<std::string>(&value)) return {.content = *text};
  return {};
}

}  // namespace hortator::accelerator
