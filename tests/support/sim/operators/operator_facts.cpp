#include "support/sim/operators/operator_facts.hpp"

#include <ATen/core/enum_tag.h>

#include <mutex>
#include <unordered_map>

namespace hortator::sim {
namespace {

bool is_tensors(const c10::TypePtr& type) {
  return type->kind() == c10::TypeKind::TensorType || type->kind() == c10::TypeKind::ListType;
}

void fill(OperatorFacts& facts, const c10::OperatorHandle& op) {
  const auto& schema = op.schema();
  facts.name = c10::toString(op.operator_name());
  facts.memory = machine::inspect_memory(op, c10::kPrivateUse1);
  facts.is_random = op.hasTag(at::Tag::nondeterministic_seeded);
  facts.no_meta = !op.hasComputedKernelForDispatchKey(c10::DispatchKey::Meta);
  facts.waits_for_masks = schema.name() == "aten::index";  // its tag says so of numbers as well
  facts.waits =
      !facts.waits_for_masks && (op.hasTag(at::Tag::dynamic_output_shape) || op.hasTag(at::Tag::data_dependent_output));
  for (const auto& result : schema.returns()) {
    if (!is_tensors(result.type())) facts.waits = true;
    if (result.alias_info() == nullptr || !result.alias_info()->isWrite()) facts.makes_tensors = true;
  }
  for (std::size_t i = 0; i < schema.arguments().size(); ++i) {
    if (schema.arguments()[i].is_out()) facts.has_outputs = true;
    if (schema.arguments()[i].name() == "generator") facts.generator = static_cast<int>(i);
  }
}

}  // namespace

OperatorFacts& facts_of(const c10::OperatorHandle& op) {
  static auto& lock = *new std::mutex;
  static auto& table = *new std::unordered_map<c10::OperatorName, OperatorFacts>;
  const std::scoped_lock held(lock);
  const auto [found, is_new] = table.try_emplace(op.operator_name());
  if (is_new) fill(found->second, op);
  return found->second;
}

}  // namespace hortator::sim
