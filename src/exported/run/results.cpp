#include "exported/run/results.hpp"

#include <utility>

#include "core/text/text.hpp"
#include "exported/file/fault.hpp"

namespace hortator::exported {
namespace {

std::optional<std::size_t> slot_of_result(const Argument& output, Slots& slots) {
  if (output.is_none()) return {};
  const auto* reference = std::get_if<Reference>(&output.content);
  if (reference == nullptr) throw ExportFault("a result is not a named value");
  return slots.add(reference->name);
}

}  // namespace

Results::Results(const std::vector<Argument>& outputs, Slots& slots) {
  for (const auto& output : outputs) {
    auto& result = outputs_.emplace_back();
    const auto* list = std::get_if<Argument::List>(&output.content);
    result.is_list = list != nullptr;
    if (list == nullptr) {
      result.slot = slot_of_result(output, slots);
    } else {
      for (const auto& item : *list) result.items.push_back(slot_of_result(item, slots));
    }
  }
}

void Results::store(std::size_t index, c10::IValue value, Frame& frame) const {
  const auto& output = outputs_[index];
  if (output.slot) frame.slots[*output.slot] = std::move(value);
  if (!output.is_list) return;
  const auto items = value.toListRef();
  if (items.size() != output.items.size()) {
    throw ExportFault(
        text::concat("a list has ", items.size(), " values, and the graph was exported with ", output.items.size()),
        "the number of such values must not depend on sizes that differ from call to call");
  }
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (output.items[i]) frame.slots[*output.items[i]] = items[i];
  }
}

}  // namespace hortator::exported
