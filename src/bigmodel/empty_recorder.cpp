#include "bigmodel/empty_recorder.hpp"

#include <ATen/EmptyTensor.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <algorithm>
#include <string_view>
#include <unordered_set>

#include "bigmodel/empty_key.hpp"

namespace hortator::bigmodel {
namespace {

using OperatorNames = std::unordered_set<std::string_view>;

// Smaller ones are simply made: what is filled by hand, through a pointer, is among them.
constexpr std::size_t least_bytes = std::size_t{1} << 20;

// Made of calls that are handled one by one: at::empty and an initialiser.
bool is_made_of_others(std::string_view name) {
  static const OperatorNames names = {"aten::zeros", "aten::ones", "aten::full", "aten::rand", "aten::randn"};
  return names.contains(name);
}

// Those that change a tensor in place, but not its values.
bool is_structural(std::string_view name) {
  static const OperatorNames names = {
      "aten::requires_grad_", "aten::detach_",   "aten::set_data",    "aten::resize_",     "aten::resize_as_",
      "aten::set_",           "aten::squeeze_",  "aten::unsqueeze_",  "aten::t_",          "aten::transpose_",
      "aten::swapaxes_",      "aten::swapdims_", "aten::as_strided_", "aten::retain_grad", "aten::rename_"};
  return names.contains(name);
}

// Those that look at a tensor's shape and type alone.
bool reads_no_values(std::string_view name) {
  static const OperatorNames names = {"aten::empty_like", "aten::zeros_like",       "aten::ones_like",
                                      "aten::full_like",  "aten::rand_like",        "aten::randn_like",
                                      "aten::new_empty",  "aten::new_zeros",        "aten::new_ones",
                                      "aten::new_full",   "aten::new_empty_strided"};
  return names.contains(name);
}

// Returns its argument or a part of it; perhaps a copy, which other calls then make.
bool returns_a_view(const c10::FunctionSchema& schema) {
  return !schema.returns().empty() && schema.returns()[0].alias_info() != nullptr &&
         !schema.returns()[0].alias_info()->isWrite();
}

c10::DispatchKeySet after(c10::DispatchKeySet keys) {
  return keys & c10::DispatchKeySet(c10::DispatchKeySet::FULL_AFTER, empty_key);
}

template <typename See>
void each_tensor(const c10::IValue& value, const See& see) {
  if (value.isTensor()) {
    see(value);
  } else if (value.isTensorList()) {
    for (const at::Tensor& tensor : value.toTensorVector()) see(c10::IValue(tensor));
  } else if (value.isList()) {
    for (const c10::IValue& part : value.toListRef()) each_tensor(part, see);
  }
}

const c10::StorageImpl* storage_of(const c10::IValue& value) {
  if (!value.isTensor()) return nullptr;
  const auto& tensor = value.toTensor();
  return tensor.defined() && tensor.has_storage() ? tensor.storage().unsafeGetStorageImpl() : nullptr;
}

}  // namespace

void EmptyRecorder::handle(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack& stack) {
  const auto& schema = op.schema();
  const std::string_view name = schema.name();
  if (make_without_memory(op, stack) || note(op, stack)) return;
  if (is_made_of_others(name) || returns_a_view(schema)) return op.redispatchBoxed(after(keys), &stack);
  if (!is_structural(name) && !reads_no_values(name)) {
    for (const auto& argument : torch::jit::last(stack, schema.arguments().size())) {
      each_tensor(argument, [&](const c10::IValue& tensor) {
        if (auto* pending = find(tensor)) fill(*pending);
      });
    }
  }
  const c10::impl::ExcludeDispatchKeyGuard inner_calls(empty_key);
  op.redispatchBoxed(after(keys), &stack);
}

bool EmptyRecorder::make_without_memory(const c10::OperatorHandle& op, torch::jit::Stack& stack) {
  constexpr std::size_t device_argument = 3;
  static const auto empty = c10::Dispatcher::singleton().findSchemaOrThrow("aten::empty", "memory_format");
  if (!(op == empty)) return false;
  const auto arguments = op.schema().arguments().size();
  auto& device = *(stack.end() - static_cast<std::ptrdiff_t>(arguments - device_argument));
  if (!device.isNone() && !device.toDevice().is_cpu()) return false;

  auto shape_alone = torch::jit::Stack(stack.end() - static_cast<std::ptrdiff_t>(arguments), stack.end());
  shape_alone[device_argument] = c10::Device(c10::kMeta);
  const c10::impl::ExcludeDispatchKeyGuard inner_calls(empty_key);
  op.callBoxed(&shape_alone);
  const auto& like = shape_alone.back().toTensor();
  if (like.layout() != c10::kStrided || like.nbytes() < least_bytes) return false;

  auto tensor = without_memory(like);
  pending_.emplace(tensor.storage().unsafeGetStorageImpl(), Pending{.storage = tensor.storage()});
  torch::jit::drop(stack, arguments);
  stack.emplace_back(std::move(tensor));
  return true;
}

// What changes a tensor in place, and nothing but that, can wait.
bool EmptyRecorder::note(const c10::OperatorHandle& op, torch::jit::Stack& stack) {
  const auto& schema = op.schema();
  const auto count = schema.arguments().size();
  if (count == 0 || !schema.name().ends_with('_') || is_structural(schema.name())) return false;
  const auto arguments = torch::jit::last(stack, count);
  auto* pending = find(arguments[0]);
  if (pending == nullptr) return false;
  bool others = false;
  for (const auto& argument : arguments.slice(1)) each_tensor(argument, [&](const auto&) { others = true; });
  if (others) return false;
  const auto self = arguments[0];
  pending->initialisers.push_back({.op = op, .arguments = torch::jit::Stack(arguments.begin(), arguments.end())});
  torch::jit::drop(stack, count);
  stack.push_back(self);
  return true;
}

EmptyRecorder::Pending* EmptyRecorder::find(const c10::IValue& value) {
  const auto found = pending_.find(storage_of(value));
  return found == pending_.end() ? nullptr : &found->second;
}

void EmptyRecorder::fill(const at::Tensor& tensor) {
  if (auto* pending = find(tensor)) fill(*pending);
}

void EmptyRecorder::fill(Pending& pending) {
  const auto own = std::move(pending);
  auto* storage = own.storage.unsafeGetStorageImpl();
  pending_.erase(storage);
  storage->set_data_ptr_noswap(c10::GetCPUAllocator()->allocate(storage->nbytes()));
  const at::NoGradGuard no_grad;
  const c10::impl::ExcludeDispatchKeyGuard inner_calls(empty_key);
  for (const auto& initialiser : own.initialisers) {
    auto stack = initialiser.arguments;
    initialiser.op.callBoxed(&stack);
  }
}

void EmptyRecorder::forget(const at::Tensor& tensor) { pending_.erase(storage_of(tensor)); }

void EmptyRecorder::leave_empty(const std::string& why) {
  for (const auto& [storage, pending] : pending_) refuse_reading(pending.storage, why);
  pending_.clear();
}

at::Tensor without_memory(const at::Tensor& like) {
  c10::Storage storage(c10::Storage::use_byte_size_t(),
                       at::detail::computeStorageNbytes(like.sizes(), like.strides(), like.element_size()),
                       at::DataPtr(nullptr, c10::kCPU), c10::GetCPUAllocator(), /*resizable=*/true);
  auto tensor = at::detail::make_tensor<c10::TensorImpl>(std::move(storage), c10::DispatchKeySet(c10::DispatchKey::CPU),
                                                         like.dtype());
  tensor.unsafeGetTensorImpl()->set_sizes_and_strides(like.sizes(), like.strides());
  return tensor;
}

void refuse_reading(const c10::Storage& storage, const std::string& why) {
  storage.unsafeGetStorageImpl()->release_data_and_set_meta_custom_data_ptr_error_msg_(why);
}

}  // namespace hortator::bigmodel
