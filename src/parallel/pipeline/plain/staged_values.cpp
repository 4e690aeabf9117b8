#include "parallel/pipeline/plain/staged_values.hpp"

#include <ATen/record_function.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <hortator/error.hpp>
#include <utility>

#include "core/text/text.hpp"
#include "interception/dispatch_keys.hpp"
#include "interception/storage_memory.hpp"
#include "machine/shapes/shape_operators.hpp"

namespace hortator::parallel {
namespace {

constexpr auto* message = "The value belongs to another stage of the pipeline";

[[noreturn]] void throw_needs_elements(const std::string& op) {
  throw UsageError(
      {.what = text::concat(op, " was called on a result of another stage of the pipeline"),
       .why =
           "each rank computes its own stage of a module that is as it was written, and knows only the shapes of what "
           "the others compute",
       .hint = "leave values out of the decisions of forward, or derive the module from hortator::HasPipelineLayers"});
}

}  // namespace

std::vector<at::Tensor> tensors_of(c10::ArrayRef<c10::IValue> values) {
  std::vector<at::Tensor> tensors;
  for (const auto& value : values) {
    if (value.isTensor()) {
      tensors.push_back(value.toTensor());
    } else if (value.isList()) {
      const auto inner = tensors_of(value.toListRef());
      tensors.insert(tensors.end(), inner.begin(), inner.end());
    }
  }
  return tensors;
}

std::vector<StagedValues::View> StagedValues::run_on_shapes(const c10::OperatorHandle& op, std::int64_t number,
                                                            torch::jit::Stack* stack) {
  const auto arguments = tensors_of(torch::jit::last(*stack, op.schema().arguments().size()));
  try {
    const at::NoGradGuard no_grad;
    const c10::impl::ExcludeDispatchKeyGuard unseen(c10::DispatchKeySet(interception::recording_key) |
                                                    c10::DispatchKeySet(interception::paged_key));
    const machine::ShapesAlone alone;
    const at::DisableRecordFunctionGuard uncounted;  // nothing is computed
    op.callBoxed(stack);
  } catch (const machine::NeedsElements& error) {
    throw_needs_elements(error.op == op.schema().name() ? error.op
                                                        : text::concat(op.schema().name(), " (", error.op, ")"));
  }
  const auto is_argument = [&](const at::Tensor& result) {
    return std::ranges::any_of(arguments, [&](const auto& argument) { return argument.is_same(result); });
  };
  const auto has_memory_of = [](const at::Tensor& result) {
    return [&result](const at::Tensor& argument) {
      return argument.defined() && argument.has_storage() && result.has_storage() &&
             argument.storage().unsafeGetStorageImpl() == result.storage().unsafeGetStorageImpl();
    };
  };
  std::vector<View> views;
  ValueId id{.op = number};
  for (const auto& result : tensors_of(torch::jit::last(*stack, op.schema().returns().size()))) {
    if (result.defined() && !is_argument(result)) {
      const auto viewed = std::ranges::find_if(arguments, has_memory_of(result));
      if (viewed != arguments.end()) {
        if (const auto of = find(*viewed)) views.push_back({.view = id, .of = *of});
      } else if (result.has_storage()) {
        interception::take_memory(result.storage(), message);
      }
      add(result, id);
    }
    ++id.result;
  }
  return views;
}

void StagedValues::add(const at::Tensor& tensor, const ValueId& id) {
  ids_.emplace(tensor.unsafeGetTensorImpl(), id);
  tensors_.insert_or_assign(id, tensor);
}

std::optional<ValueId> StagedValues::find(const at::Tensor& tensor) const {
  const auto found = ids_.find(tensor.unsafeGetTensorImpl());
  return found == ids_.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace hortator::parallel
