#include "machine/races/operator_memory.hpp"

#include <ATen/core/enum_tag.h>
#include <c10/core/TensorOptions.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <string_view>
#include <unordered_map>

namespace hortator::machine {
namespace {

template <typename List>
bool contains(const List& list, std::string_view name) {
  return std::ranges::find(list, name) != list.end();
}

// They change what a tensor refers to, or look at its shape only. _copy_from is a part of copy_.
constexpr std::array<std::string_view, 6> about_tensors = {
    "aten::_copy_from",        "aten::_has_compatible_shallow_copy_type",
    "aten::_fused_sdp_choice", "aten::resize_",
    "aten::record_stream",     "aten::set_"};

constexpr std::array<std::string_view, 3> allocations = {"aten::empty", "aten::empty_strided", "aten::empty_permuted"};

c10::DispatchKey key_of(c10::DeviceType type) {
  return c10::computeDispatchKey(c10::kFloat, c10::kStrided, c10::Device(type));
}

bool is_composite(const c10::OperatorHandle& op, c10::DeviceType type) {
  if (op.hasKernelForDispatchKey(key_of(type))) return false;
  return op.hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd) ||
         op.hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutograd) ||
         op.hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutogradNonFunctional);
}

// Batch norms write their running statistics in training, which their schemas do not say. These only read them.
bool only_reads_statistics(std::string_view name) {
  return name.ends_with("_backward") || name.ends_with("_no_training") || name.ends_with("_no_update");
}

bool is_running_statistic(std::string_view argument) { return argument == "running_mean" || argument == "running_var"; }

bool says_training(std::string_view argument) {
  return argument == "training" || argument == "train" || argument == "use_input_stats";
}

}  // namespace

bool OperatorMemory::is_written(std::size_t argument, c10::ArrayRef<const c10::IValue> arguments) const {
  if (writes[argument] != 0) return true;
  if (writes_in_training[argument] == 0) return false;
  return !training || (arguments[*training].isBool() && arguments[*training].toBool());
}

OperatorMemory inspect_memory(const c10::OperatorHandle& op, c10::DeviceType type) {
  const auto& schema = op.schema();
  OperatorMemory memory{.name = schema.name()};
  bool makes_alias = false;
  bool writes_any = false;
  for (const auto& argument : schema.arguments()) {
    const auto* const alias = argument.alias_info();
    const bool is_written = alias != nullptr && alias->isWrite();
    if (says_training(argument.name())) memory.training = memory.writes.size();
    memory.writes.push_back(static_cast<char>(is_written));
    memory.writes_in_training.push_back(static_cast<char>(alias == nullptr && is_running_statistic(argument.name()) &&
                                                          !only_reads_statistics(schema.name())));
    makes_alias |= alias != nullptr && !is_written;
    writes_any |= is_written;
  }
  for (const auto& result : schema.returns())
    memory.is_new.push_back(static_cast<char>(result.alias_info() == nullptr));
  memory.is_copy = memory.name == "aten::copy_";
  memory.only_allocates = contains(allocations, memory.name);
  memory.keeps_for_stream = memory.name == "aten::record_stream";
  memory.waits_for_masks = memory.name == "aten::index";  // its tag says so of numbers as well
  memory.waits = !memory.waits_for_masks &&
                 (op.hasTag(at::Tag::data_dependent_output) || op.hasTag(at::Tag::dynamic_output_shape));
  const bool is_view = makes_alias && !writes_any;
  const bool touches = !is_view && !contains(about_tensors, memory.name) && !memory.only_allocates;
  memory.touches_device = touches && (memory.is_copy || !is_composite(op, type));
  memory.touches_host = touches && (memory.is_copy || !is_composite(op, c10::kCPU));
  return memory;
}

const OperatorMemory* memory_of(const at::RecordFunction& call, c10::DeviceType type) {
  static auto& mutex = *new std::mutex;
  static auto& known = *new std::unordered_map<c10::OperatorName, OperatorMemory>;
  const auto name = call.operator_name();
  if (!name) return nullptr;
  const std::scoped_lock lock(mutex);
  if (const auto found = known.find(*name); found != known.end()) return &found->second;
  const auto op = c10::Dispatcher::singleton().findSchema(*name);
  if (!op) return nullptr;
  return &known.emplace(*name, inspect_memory(*op, type)).first->second;
}

}  // namespace hortator::machine
