#include "observe/operators/operator_facts.hpp"

#include <ATen/core/dispatch/Dispatcher.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <string_view>
#include <unordered_map>

namespace hortator::observe {
namespace {

// Their results are not computed: the memory is not filled yet, or is that of another tensor.
constexpr auto without_values = std::to_array<std::string_view>(
    {"aten::empty", "aten::empty_like", "aten::empty_strided", "aten::empty_permuted", "aten::new_empty",
     "aten::new_empty_strided", "aten::resize_", "aten::set_", "aten::record_stream", "aten::_unsafe_view",
     "aten::_reshape_alias", "aten::detach", "aten::detach_", "aten::requires_grad_", "aten::_fused_sdp_choice"});

bool is_view(const c10::FunctionSchema& schema) {
  return std::ranges::any_of(schema.returns(), [](const auto& result) {
    return result.alias_info() != nullptr && !result.alias_info()->isWrite();
  });
}

std::vector<std::size_t> written_arguments(const c10::FunctionSchema& schema) {
  std::vector<std::size_t> written;
  for (std::size_t i = 0; i < schema.arguments().size(); ++i) {
    const auto* const alias = schema.arguments()[i].alias_info();
    if (alias != nullptr && alias->isWrite()) written.push_back(i);
  }
  return written;
}

OperatorFacts inspect(const c10::OperatorHandle& op) {
  const auto& schema = op.schema();
  OperatorFacts facts{.name = schema.name()};
  const bool is_composite = op.hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd);
  facts.is_recorded =
      !is_composite && !is_view(schema) && std::ranges::find(without_values, facts.name) == without_values.end();
  if (schema.returns().empty()) facts.written = written_arguments(schema);
  return facts;
}

}  // namespace

const OperatorFacts* facts_of(const at::RecordFunction& call) {
  static auto& mutex = *new std::mutex;
  static auto& known = *new std::unordered_map<c10::OperatorName, OperatorFacts>;
  const auto name = call.operator_name();
  if (!name) return nullptr;
  const std::scoped_lock lock(mutex);
  if (const auto found = known.find(*name); found != known.end()) return &found->second;
  const auto op = c10::Dispatcher::singleton().findSchema(*name);
  return op ? &known.emplace(*name, inspect(*op)).first->second : nullptr;
}

}  // namespace hortator::observe
