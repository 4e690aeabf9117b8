#include "bigmodel/operand_placement.hpp"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "interception/dispatch_keys.hpp"
#include "interception/operator_handlers.hpp"
#include "interception/operator_use.hpp"

namespace hortator::bigmodel {
namespace {

thread_local const ResidentStorages* residents_of_thread = nullptr;

// Operators whose purpose is to copy values between devices.
constexpr std::array<std::string_view, 6> device_copies = {"aten::copy_",    "aten::to",   "aten::_to_copy",
                                                           "aten::set_data", "aten::set_", "aten::type_as"};

bool copies_between_devices(const std::string& name) {
  return std::ranges::find(device_copies, name) != device_copies.end();
}

bool is_number(const at::Tensor& tensor) { return tensor.dim() == 0 && tensor.device().is_cpu(); }

bool is_list_of_tensors(const c10::IValue& value) { return value.isTensorList() || value.isOptionalTensorList(); }

template <typename Visit>
void each_argument(const c10::IValue& value, const Visit& visit) {
  if (value.isTensor()) {
    if (value.toTensor().defined() && !is_number(value.toTensor())) visit(value.toTensor());
  } else if (is_list_of_tensors(value)) {
    for (const c10::IValue& part : value.toListRef()) each_argument(part, visit);
  }
}

std::optional<c10::Device> common_device_of(c10::ArrayRef<c10::IValue> arguments) {
  std::vector<OperandPlacement> operands;
  for (const auto& argument : arguments) {
    each_argument(argument, [&](const at::Tensor& tensor) {
      operands.push_back({.device = tensor.device(), .is_resident = residents_of_thread->has(tensor)});
    });
  }
  return common_device(operands);
}

/// Copies of one call's arguments on the target device.
class OperandCopies {
 public:
  explicit OperandCopies(c10::Device to) : to_(to) {}

  c10::IValue copy_in(const c10::IValue& value, bool is_written) {
    if (value.isTensor()) return copy_tensor(value.toTensor(), is_written);
    if (!is_list_of_tensors(value)) return value;
    auto list = value.toList().copy();
    for (std::size_t i = 0; i < list.size(); ++i) list.set(i, copy_in(list.get(i), is_written));
    return list;
  }

  /// The original tensor for a copy that was written in place; any other value unchanged.
  c10::IValue original(const c10::IValue& value) const {
    if (!value.isTensor()) return value;
    for (const auto& [original, copy] : written_) {
      if (value.toTensor().is_same(copy)) return original;
    }
    return value;
  }
  void write_back() const {
    for (const auto& [original, copy] : written_) original.copy_(copy);
  }

 private:
  at::Tensor copy_tensor(const at::Tensor& tensor, bool is_written) {
    if (!tensor.defined() || is_number(tensor) || tensor.device() == to_) return tensor;
    auto copy = tensor.to(to_);
    if (is_written) written_.emplace_back(tensor, copy);
    return copy;
  }

  c10::Device to_;
  std::vector<std::pair<at::Tensor, at::Tensor>> written_;
};

void run_on_one_device(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  const auto& use = interception::use_of(op);
  const auto arguments = torch::jit::last(*stack, use.arguments);
  const bool is_exempt =
      residents_of_thread == nullptr || use.leaves_bytes_alone || copies_between_devices(op.schema().name());
  const auto target = is_exempt ? std::nullopt : common_device_of(arguments);
  if (!target) return interception::pass_on(interception::meeting_key, op, keys, stack);

  OperandCopies copies(*target);
  const auto first = stack->size() - use.arguments;
  {
    const c10::impl::ExcludeDispatchKeyGuard without_key(interception::meeting_key);
    for (std::size_t i = 0; i < use.arguments; ++i)
      (*stack)[first + i] = copies.copy_in((*stack)[first + i], use.writes(i));
    op.callBoxed(stack);  // dispatches again: the copies have other keys
    copies.write_back();
  }
  for (auto i = first; i < stack->size(); ++i) (*stack)[i] = copies.original((*stack)[i]);
}

const ResidentStorages* begin_placement(const ResidentStorages& residents) {
  interception::handle_meetings(&run_on_one_device);
  return std::exchange(residents_of_thread, &residents);
}

}  // namespace

std::optional<c10::Device> common_device(std::span<const OperandPlacement> operands) {
  const auto is_elsewhere = [&](const OperandPlacement& operand) { return operand.device != operands.front().device; };
  if (std::ranges::none_of(operands, is_elsewhere)) return {};
  std::optional<c10::Device> target;
  for (const auto& [device, is_resident] : operands) {
    if (device.is_cpu()) continue;
    if (is_resident) return device;
    if (!target || device.index() > target->index()) target = device;
  }
  return target;
}

OperandPlacementScope::OperandPlacementScope(const ResidentStorages& residents)
    : former_(begin_placement(residents)), on_(interception::meeting_key) {}
OperandPlacementScope::~OperandPlacementScope() { residents_of_thread = former_; }

}  // namespace hortator::bigmodel
