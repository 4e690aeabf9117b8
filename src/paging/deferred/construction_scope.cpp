#include "paging/deferred/construction_scope.hpp"

#include <ATen/core/ivalue.h>

#include <algorithm>
#include <hortator/bigmodel/deferred_construction.hpp>
#include <optional>
#include <set>
#include <utility>

#include "interception/claimed_operators.hpp"
#include "interception/claims.hpp"
#include "interception/operator_use.hpp"
#include "interception/storage_memory.hpp"
#include "interception/thread_operators.hpp"
#include "machine/memory/huge_pages.hpp"

namespace hortator::paging {
namespace {

bool has_elements(const at::Tensor& tensor) {
  return tensor.defined() && tensor.has_storage() && tensor.storage().nbytes() > 0;
}

void take_from_provider(const at::Tensor& tensor, interception::Content content) {
  if (const auto former = interception::claim_of(tensor)) former.provider->hand_over(former.number, content);
}

thread_local Recording* current = nullptr;

// Smaller tensors would waste too much of their last page.
constexpr std::size_t own_pages = std::size_t{64} * 1024;

/// Without memory for all of them, leaves them as they are: give_memory() says what is missing.
void give_huge_pages(const std::vector<at::Tensor>& tensors) {
  std::vector<std::size_t> sizes;
  for (const auto& tensor : tensors) sizes.push_back(tensor.storage().nbytes());
  auto pieces = machine::memory_on_huge_pages(sizes);
  for (std::size_t i = 0; i < pieces.size(); ++i) interception::own_memory(tensors[i].storage(), std::move(pieces[i]));
}

bool makes_empty_tensor(const c10::OperatorHandle& op) {
  const auto& name = op.operator_name();
  return (name.name == "aten::empty" && name.overload_name == "memory_format") || name.name == "aten::empty_strided";
}

bool is_random(const c10::OperatorHandle& op) { return op.hasTag(at::Tag::nondeterministic_seeded); }

bool takes_tensors(c10::ArrayRef<c10::IValue> arguments) {
  return std::ranges::any_of(
      arguments, [](const c10::IValue& argument) { return argument.isTensor() && argument.toTensor().defined(); });
}

void make_without_memory(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  interception::ThreadOperators::run_as_always(op, keys, stack);
  const auto& made = stack->back().toTensor();
  if (made.device().is_cpu() && made.layout() == at::kStrided && made.numel() > 0) current->add(made);
}

// Operators that make tensors from no tensor (ones, randn) consist of others, which are recorded themselves. An
// operator that reads a recorded tensor is intercepted by its key (interception.hpp), which gives the tensor its
// values.
void run_recorded(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  if (current == nullptr) return interception::ThreadOperators::open(op, keys, stack);
  if (makes_empty_tensor(op)) return make_without_memory(op, keys, stack);
  const auto count = op.schema().arguments().size();
  const auto arguments = torch::jit::last(*stack, count);
  if (auto noted = current->record(op, arguments); noted.defined()) {
    torch::jit::drop(*stack, count);
    stack->emplace_back(std::move(noted));
    return;
  }
  if (!takes_tensors(arguments) || interception::use_of(op).leaves_bytes_alone)
    return interception::ThreadOperators::open(op, keys, stack);
  // It computes: the temporary tensors that it makes must have values.
  if (is_random(op)) current->catch_up();
  interception::ThreadOperators::run_as_always(op, keys, stack);
}

Recording* begin(Recording& recording) {
  interception::start_interception();
  return std::exchange(current, &recording);
}

}  // namespace

bool lacks_memory(const at::Tensor& tensor) {
  return has_elements(tensor) && tensor.device().is_cpu() && interception::memory_of(tensor.storage()) == nullptr;
}

bool is_deferred(const at::Tensor& tensor) { return static_cast<bool>(interception::claim_of(tensor)); }

void settle(const at::Tensor& tensor) {
  if (has_elements(tensor)) take_from_provider(tensor, interception::Content::keep);
}

void drop_values(const at::Tensor& tensor, std::string why) {
  if (!has_elements(tensor) || !tensor.device().is_cpu()) return;
  take_from_provider(tensor, interception::Content::drop);
  interception::take_memory(tensor.storage(), std::move(why));
}

void give_memory(const at::Tensor& tensor) {
  if (!has_elements(tensor)) return;
  take_from_provider(tensor, interception::Content::drop);
  if (lacks_memory(tensor))
    interception::own_memory(tensor.storage(), interception::new_memory(tensor.storage().nbytes()));
}

void give_lacking_memory(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> large;
  std::set<const c10::StorageImpl*> known;  // tied tensors share one
  for (const auto& tensor : tensors) {
    if (!lacks_memory(tensor)) continue;
    take_from_provider(tensor, interception::Content::drop);
    const bool is_large = tensor.storage().nbytes() >= own_pages;
    if (is_large && lacks_memory(tensor) && known.insert(tensor.storage().unsafeGetStorageImpl()).second)
      large.push_back(tensor);
  }
  give_huge_pages(large);
  for (const auto& tensor : tensors) {
    if (lacks_memory(tensor)) give_memory(tensor);
  }
}

bool defers_construction() { return current != nullptr; }

ConstructionScope::ConstructionScope(Recording::Order order)
    : recording_(std::make_shared<Recording>(order)), former_(begin(*recording_)), on_(&run_recorded) {}

ConstructionScope::~ConstructionScope() {
  current = former_;
  recording_->end();
}

}  // namespace hortator::paging

namespace hortator {

class DeferredConstruction::Scope {
 private:
  paging::ConstructionScope scope_{paging::Recording::Order::as_written};
};

DeferredConstruction::DeferredConstruction() : scope_(std::make_unique<Scope>()) {}
DeferredConstruction::~DeferredConstruction() = default;

}  // namespace hortator
