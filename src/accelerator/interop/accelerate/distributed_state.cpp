#include "accelerator/interop/accelerate/distributed_state.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include "core/text/text.hpp"

namespace hortator::accelerator {
namespace {

using formats::PickleValue;

/// The value of a dict under a key; made if it has none.
PickleValue& entry(PickleValue& dict, const std::string& key) {
  if (!std::holds_alternative<PickleValue::Dict>(dict.content)) dict.content = PickleValue::Dict();
  auto& items = std::get<PickleValue::Dict>(dict.content);
  const auto found = std::ranges::find_if(items, [&](const auto& item) {
    const auto* name = std::get_if<std::string>(&item.first.content);
    return name != nullptr && *name == key;
  });
  if (found != items.end()) return found->second;
  return items.emplace_back(PickleValue{.content = key}, PickleValue()).second;
}

/// The state dict's param_groups are a list, which paths number.
void make_list_of(PickleValue& numbered) {
  auto* dict = std::get_if<PickleValue::Dict>(&numbered.content);
  if (dict == nullptr) return;
  PickleValue::List list(dict->size());
  for (auto& [key, value] : *dict) {
    const auto* name = std::get_if<std::string>(&key.content);
    std::size_t number = list.size();
    if (name != nullptr) std::from_chars(name->data(), name->data() + name->size(), number);
    if (number < list.size()) list[number] = std::move(value);
  }
  numbered.content = std::move(list);
}

}  // namespace

DistributedState::DistributedState(const std::filesystem::path& folder) : parts_(folder) {
  const auto place = [&](const formats::DistributedPath& path) -> PickleValue& {
    auto* value = &value_;
    for (const auto& name : path) value = &entry(*value, name);
    return *value;
  };
  for (const auto& tensor : parts_.tensors())
    place(tensor.path).content = formats::PickledTensor{.spec = tensor.spec, .storage = text::join(tensor.path, ".")};
  for (const auto& object : parts_.objects()) place(object.path) = parts_.object(object);
  make_list_of(entry(value_, "param_groups"));
  auto& state = entry(value_, "state");  // the writer leaves out empty dicts: SGD without momentum has no state
  if (std::holds_alternative<std::nullptr_t>(state.content)) state.content = PickleValue::Dict();
}

}  // namespace hortator::accelerator
