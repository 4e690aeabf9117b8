#include "machine/shapes/shape_operators.hpp"

#include <ATen/ExpandUtils.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/enum_tag.h>
#include <ATen/core/stack.h>
#include <ATen/ops/empty_strided.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "interception/dispatch_keys.hpp"
#include "interception/registration.hpp"
#include "machine/shapes/counted_memory.hpp"
#include "machine/shapes/shape_rules.hpp"

namespace hortator::machine {
namespace {

using c10::DispatchKey;
using c10::IValue;
using interception::pass_on;
using interception::shapes_key;

constexpr std::size_t small_bytes = std::size_t{256} << 10;
/// The same for whole numbers and truth values, by which programs decide, and for the results that they make.
constexpr std::size_t small_numbers = std::size_t{4} << 20;
constexpr std::int64_t max_results = std::int64_t{64} << 20;

/// ShapesAlone.
thread_local bool is_alone = false;

/// How an operator is carried out.
enum class Way {
  compute,    ///< it reads no elements, or only its elements say what its results are
  decompose,  ///< it consists of operators that come here themselves
  leave_out,  ///< it changes elements of its arguments
  shape,      ///< it makes new tensors
};

struct Plan {
  Way way = Way::compute;
  ShapeRule rule = nullptr;
  bool is_known_to_meta = false;
  bool depends_on_values = false;         ///< what its results are
  std::vector<std::size_t> written = {};  ///< arguments
};

// They look at shapes only, or change what a tensor refers to.
constexpr auto about_shapes = std::to_array<std::string_view>(
    {"aten::_has_compatible_shallow_copy_type", "aten::_fused_sdp_choice", "aten::resize_", "aten::resize_as_",
     "aten::set_", "aten::set_data", "aten::empty", "aten::empty_strided", "aten::empty_permuted",
     "aten::record_stream", "aten::is_same_size", "aten::_cummax_helper", "aten::is_pinned", "aten::_resize_output_"});

// Written as compositions, but they work on elements themselves.
constexpr auto indivisible =
    std::to_array<std::string_view>({"aten::convolution", "aten::convolution_backward", "aten::stack", "aten::copy_",
                                     "aten::native_group_norm", "aten::logsumexp"});

template <typename List>
bool is_among(const List& list, std::string_view name) {
  return std::ranges::find(list, name) != list.end();
}

Plan plan_of(const c10::OperatorHandle& op) {
  const auto& schema = op.schema();
  const auto& name = schema.name();
  Plan plan{.rule = shape_rule(name)};
  bool makes_alias = false;
  for (std::size_t i = 0; i < schema.arguments().size(); ++i) {
    const auto* const alias = schema.arguments()[i].alias_info();
    if (alias != nullptr && alias->isWrite()) plan.written.push_back(i);
    makes_alias |= alias != nullptr && !alias->isWrite();
  }
  const bool on_cpu = op.hasKernelForDispatchKey(DispatchKey::CPU);
  const bool is_implicit = op.hasKernelForDispatchKey(DispatchKey::CompositeImplicitAutograd);
  const bool is_explicit = op.hasKernelForDispatchKey(DispatchKey::CompositeExplicitAutograd) ||
                           op.hasKernelForDispatchKey(DispatchKey::CompositeExplicitAutogradNonFunctional);
  plan.is_known_to_meta =
      op.hasKernelForDispatchKey(DispatchKey::Meta) || (is_explicit && !is_among(indivisible, name));
  plan.depends_on_values = op.hasTag(at::Tag::data_dependent_output) || op.hasTag(at::Tag::dynamic_output_shape);
  if (is_among(about_shapes, name) || op.hasTag(at::Tag::inplace_view)) return plan;
  if (plan.depends_on_values && name != "aten::index") return plan;
  if (makes_alias && plan.written.empty() && (on_cpu || !is_implicit)) return plan;
  const bool is_whole = on_cpu || is_among(indivisible, name);
  if (is_implicit && !is_whole) {
    plan.way = Way::decompose;
  } else if (!plan.written.empty()) {
    plan.way = Way::leave_out;
  } else {
    plan.way = is_explicit && !is_whole ? Way::decompose : Way::shape;
  }
  return plan;
}

const Plan& known_plan(const c10::OperatorHandle& op) {
  thread_local std::unordered_map<const c10::FunctionSchema*, Plan> known;
  const auto* const schema = &op.schema();
  const auto found = known.find(schema);
  return found != known.end() ? found->second : known.emplace(schema, plan_of(op)).first->second;
}

template <typename Act>
void each_tensor(const IValue& value, const Act& act) {
  if (value.isTensor()) {
    if (value.toTensor().defined()) act(value.toTensor());
  } else if (value.isList()) {
    for (const auto& one : value.toListRef()) each_tensor(one, act);
  }
}

/// What the arguments of a call are.
struct Operands {
  std::size_t bytes = 0;
  bool are_plain = true;  ///< dense, and on the CPU or where there are shapes alone
  bool hold_mask = false;
  bool are_whole_numbers = true;
  std::vector<std::int64_t> together = {};  ///< the sizes to which they broadcast, the last first

  void add(const at::Tensor& tensor) {
    bytes += static_cast<std::size_t>(tensor.numel()) * tensor.element_size();
    hold_mask |= tensor.scalar_type() == at::kBool || tensor.scalar_type() == at::kByte;
    are_whole_numbers &= at::isIntegralType(tensor.scalar_type(), /*includeBool=*/true);
    together.resize(std::max(together.size(), static_cast<std::size_t>(tensor.dim())), 1);
    for (std::int64_t dim = 1; dim <= tensor.dim(); ++dim) {
      auto& size = together[static_cast<std::size_t>(dim - 1)];
      size = std::max(size, tensor.size(-dim));
    }
  }
  bool are_small() const {
    if (bytes <= small_bytes) return true;
    if (!are_whole_numbers || bytes > small_numbers) return false;
    std::int64_t results = 1;
    for (const auto size : together) results *= std::min(size, max_results);
    return results <= max_results;
  }
};

Operands operands_of(c10::ArrayRef<IValue> arguments) {
  Operands operands;
  for (const auto& argument : arguments) {
    each_tensor(argument, [&](const at::Tensor& tensor) {
      operands.are_plain &= (tensor.is_cpu() || is_alone) && tensor.layout() == at::kStrided && !tensor.is_quantized();
      if (operands.are_plain) operands.add(tensor);
    });
  }
  return operands;
}

// Replaces each tensor in a value, also in lists.
template <typename Change>
IValue with_tensors(const IValue& value, const Change& change) {
  if (value.isTensor()) return value.toTensor().defined() ? IValue(change(value.toTensor())) : value;
  if (!value.isList()) return value;
  auto list = value.toList();
  bool has_tensors = false;
  for (const auto& one : value.toListRef()) has_tensors |= one.isTensor();
  if (!has_tensors) return value;
  c10::impl::GenericList changed(list.elementType());
  for (const auto& one : value.toListRef()) changed.push_back(with_tensors(one, change));
  return changed;
}

at::Tensor without_elements(const at::Tensor& tensor) {
  auto made = at::empty_strided(tensor.sizes(), tensor.strides(), tensor.options().device(at::kMeta));
  if (tensor.unsafeGetTensorImpl()->is_wrapped_number()) made.unsafeGetTensorImpl()->set_wrapped_number(true);
  return made;
}

at::Tensor with_addresses(const at::Tensor& meta, c10::Device device) {
  return at::empty_strided(meta.sizes(), meta.strides(), meta.options().device(device));
}

// Where its results go: operators take tensors on one device, and numbers.
c10::Device device_of(c10::ArrayRef<IValue> arguments) {
  c10::Device device = at::kCPU;
  for (const auto& argument : arguments)
    each_tensor(argument, [&](const at::Tensor& tensor) { device = device.is_cpu() ? tensor.device() : device; });
  return device;
}

std::mutex full_mutex;
std::set<std::string> in_full;

void note_in_full(const std::string& name) {
  const std::lock_guard lock(full_mutex);
  in_full.insert(name);
}

// Runs the operator on tensors without elements: the stack's arguments are replaced by its results.
void run_on_meta(const c10::OperatorHandle& op, std::vector<IValue>& stack) {
  for (auto& value : stack) value = with_tensors(value, without_elements);
  op.callBoxed(&stack);
}

// Operators without a rule of LibTorch's that write to a new tensor work element by element: logical_and.
void resize_as_broadcast(const std::vector<IValue>& arguments, const Plan& plan) {
  const auto& written = arguments[plan.written.front()];
  if (!written.isTensor() || !written.toTensor().defined() || written.toTensor().numel() > 0) return;
  std::vector<std::int64_t> sizes;
  for (const auto& argument : arguments) {
    if (!argument.isTensor() || !argument.toTensor().defined() || argument.toTensor().is_same(written.toTensor()))
      continue;
    sizes = at::infer_size(sizes, argument.toTensor().sizes());
  }
  written.toTensor().resize_(sizes);
}

// What it writes to stays as it is, but results that it would resize.
void leave_out(const c10::OperatorHandle& op, const Plan& plan, torch::jit::Stack* stack) {
  const auto count = op.schema().arguments().size();
  const std::vector<IValue> arguments(stack->end() - static_cast<std::ptrdiff_t>(count), stack->end());
  if (plan.is_known_to_meta) {
    std::vector<IValue> metas;
    for (const auto& argument : arguments) metas.push_back(with_tensors(argument, without_elements));
    auto called = metas;
    op.callBoxed(&called);
    for (const auto i : plan.written) {
      if (!arguments[i].isTensor() || !arguments[i].toTensor().defined()) continue;
      const auto& target = arguments[i].toTensor();
      if (target.sizes() != metas[i].toTensor().sizes()) target.resize_(metas[i].toTensor().sizes());
    }
  }
  if (!plan.is_known_to_meta) resize_as_broadcast(arguments, plan);
  torch::jit::drop(*stack, count);
  for (std::size_t i = 0; i < op.schema().returns().size(); ++i)
    stack->push_back(arguments[plan.written[std::min(i, plan.written.size() - 1)]]);
}

void make_results(const c10::OperatorHandle& op, const Plan& plan, torch::jit::Stack* stack) {
  const auto count = op.schema().arguments().size();
  const auto arguments = torch::jit::last(*stack, count);
  if (plan.rule != nullptr) {
    auto results = plan.rule(arguments);
    torch::jit::drop(*stack, count);
    for (auto& result : results) stack->push_back(std::move(result));
    return;
  }
  std::vector<IValue> called(arguments.begin(), arguments.end());
  const auto device = device_of(arguments);
  run_on_meta(op, called);
  torch::jit::drop(*stack, count);
  const auto make = [device](const at::Tensor& meta) { return with_addresses(meta, device); };
  for (const auto& result : called) stack->push_back(with_tensors(result, make));
}

void compute(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  const c10::impl::ExcludeDispatchKeyGuard inner(shapes_key);
  pass_on(shapes_key, op, keys, stack);
}

void run_on_shapes(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  const auto& plan = known_plan(op);
  const MemoryMaker maker(op.schema().name());
  if (plan.way == Way::decompose) return pass_on(shapes_key, op, keys, stack);
  const auto operands = operands_of(torch::jit::last(*stack, op.schema().arguments().size()));
  const bool needs_values = plan.depends_on_values && (op.schema().name() != "aten::index" || operands.hold_mask);
  if (is_alone && (needs_values || !operands.are_plain)) throw NeedsElements{op.schema().name()};
  if (plan.way == Way::compute) return compute(op, keys, stack);
  if (!is_alone && (!operands.are_plain || operands.are_small() || needs_values)) return compute(op, keys, stack);
  const c10::impl::ExcludeDispatchKeyGuard inner(shapes_key);
  if (plan.way == Way::leave_out) return leave_out(op, plan, stack);
  if (plan.rule != nullptr || plan.is_known_to_meta) return make_results(op, plan, stack);
  if (is_alone) throw NeedsElements{op.schema().name()};
  note_in_full(op.schema().name());
  pass_on(shapes_key, op, keys, stack);
}

void install_once() {
  [[maybe_unused]] static const bool is_installed =
      (interception::intercept_all(shapes_key, interception::as_kernel<&run_on_shapes>(),
                                   "Shapes cannot be computed without the elements"),
       true);
}

}  // namespace

ShapesAlone::ShapesAlone() : was_alone_((install_once(), std::exchange(is_alone, true))), on_(shapes_key) {}
ShapesAlone::~ShapesAlone() { is_alone = was_alone_; }

void compute_shapes_only() {
  install_once();
  c10::impl::tls_set_dispatch_key_included(shapes_key, true);
}

std::set<std::string> operators_computed_in_full() {
  const std::lock_guard lock(full_mutex);
  return in_full;
}

}  // namespace hortator::machine
