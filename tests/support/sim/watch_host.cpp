// The host's operators on page-locked memory, as uses by the host.
#include <ATen/record_function.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "support/sim/memory.hpp"
#include "support/sim/near.hpp"
#include "support/sim/state.hpp"

namespace hortator::sim {
namespace {

// They look at a tensor, but not at its elements; or call others that are watched.
bool touches_no_elements(std::string_view name) {
  constexpr std::array<std::string_view, 9> names = {"aten::to",         "aten::_to_copy",  "aten::empty_like",
                                                     "aten::pin_memory", "aten::is_pinned", "aten::_pin_memory",
                                                     "aten::zeros_like", "aten::ones_like", "aten::resize_"};
  return std::ranges::find(names, name) != names.end();
}

bool is_view(const c10::FunctionSchema& schema) {
  return std::ranges::any_of(schema.returns(), [](const c10::Argument& result) {
    return result.alias_info() != nullptr && !result.alias_info()->isWrite();
  });
}

bool has_far_tensor(c10::ArrayRef<const c10::IValue> inputs) {
  bool found = false;
  for (const auto& input : inputs)
    for_tensors(input, [&](const at::Tensor& tensor) { found = found || is_far(tensor); });
  return found;
}

void note_uses(const at::RecordFunction& call) {
  const auto schema = call.operator_schema();
  if (!schema || touches_no_elements(call.name()) || is_view(*schema) || has_far_tensor(call.inputs())) return;
  for (std::size_t i = 0; i < call.inputs().size(); ++i) {
    const auto* const alias = schema->arguments()[i].alias_info();
    std::vector<BlockUse> uses;
    for_tensors(call.inputs()[i], [&](const at::Tensor& tensor) {
      if (tensor.defined() && tensor.is_cpu() && tensor.has_storage())
        add_use(uses, tensor, alias != nullptr && alias->isWrite());
    });
    const std::scoped_lock lock(state_lock());
    for (const auto& use : uses)
      races().use(use.block->history, machine::host_timeline, {.name = call.name()}, use.bytes, use.writes);
  }
}

std::unique_ptr<at::ObserverContext> begin(const at::RecordFunction& call) {
  note_uses(call);
  return nullptr;
}

std::optional<at::CallbackHandle> watcher;

}  // namespace

void watch_host(bool on) {
  if (on == watcher.has_value()) return;
  if (on) {
    watcher =
        at::addGlobalCallback(at::RecordFunctionCallback(begin).needsInputs(true).scopes({at::RecordScope::FUNCTION}));
  } else {
    at::removeCallback(*watcher);
    watcher.reset();
  }
}

}  // namespace hortator::sim
