#include "parallel/tensor/interception.hpp"

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>
#include <c10/core/GradMode.h>
#include <c10/core/InferenceMode.h>
#include <torch/version.h>

#include <algorithm>
#include <array>
#include <hortator/error.hpp>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "comm/self/self_communicator.hpp"
#include "core/text/text.hpp"
#include "interception/dispatch_keys.hpp"
#include "interception/operator_handlers.hpp"
#include "interception/weight_operators.hpp"
#include "parallel/tensor/copy_views.hpp"
#include "parallel/tensor/operator_call.hpp"
#include "parallel/tensor/trial.hpp"

namespace hortator::parallel {
namespace {

/// What is known of an operator.
struct OperatorFacts {
  OperatorRule rule = nullptr;
  bool is_composite = false;  ///< it consists of operators that are intercepted themselves
};

const OperatorFacts& facts_of(const c10::OperatorHandle& op) {
  thread_local std::unordered_map<const c10::FunctionSchema*, OperatorFacts> known;
  const auto* schema = &op.schema();
  if (const auto found = known.find(schema); found != known.end()) return found->second;
  const OperatorFacts facts{.rule = find_rule(op),
                            .is_composite = op.hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd)};
  return known.emplace(schema, facts).first->second;
}

[[noreturn]] void throw_cannot(const std::string& name, const char* why, const char* hint) {
  throw UsageError(
      {.what = text::concat(name, " was called on a tensor that is divided among ranks"), .why = why, .hint = hint});
}

// The layout of a divided tensor in memory is that of its part.
void refuse_strides(const std::string& name) {
  if (name != "aten::as_strided" && name != "aten::as_strided_" && name != "aten::set_.source_Storage") return;
  throw_cannot(name, "no rank has the memory of the whole tensor", "use view, reshape or slices");
}

/// The divided arguments of a call, gathered.
struct GatheredArguments {
  std::string text = {};  ///< what they were
  SharedRanks ranks = {};
  Copies copies = {};

  c10::IValue whole(const c10::IValue& value) {
    if (!interception::has_divided_tensor(value)) return value;
    if (value.isTensor()) return whole(operand_of(value.toTensor()));
    auto list = value.toList().copy();
    for (std::size_t i = 0; i < list.size(); ++i) list.set(i, whole(list.get(i)));
    return list;
  }
  at::Tensor whole(const Operand& operand) {
    if (!operand.is_divided()) return operand.tensor;
    ranks = operand.ranks;
    text += text::concat(text.empty() ? "" : ", ", operand.text());
    auto tensor = operand.whole();
    copies.add(tensor, operand.tensor);
    return tensor;
  }
};

void refuse_writing(const OperatorCall& call) {
  for (std::size_t i = 0; i < call.count(); ++i) {
    const auto* alias = call.schema().arguments()[i].alias_info();
    if (alias == nullptr || !alias->isWrite() || !interception::has_divided_tensor(call.argument(i))) continue;
    throw_cannot(toString(call.op().operator_name()), "it changes the tensor in place, and has no rule for that",
                 "use the operator that returns a new tensor");
  }
}

/// A divided parameter as an activation: operators that consist of others look at sizes, and a parameter has those of
/// its part.
c10::IValue with_whole_sizes(const c10::IValue& value) {
  if (!interception::has_divided_tensor(value)) return value;
  if (value.isTensor()) {
    const auto& tensor = value.toTensor();
    if (!is_divided_parameter(tensor)) return tensor;
    auto operand = operand_of(tensor);
    return divided_tensor(std::move(operand.tensor), *operand.division, operand.ranks);
  }
  auto list = value.toList().copy();
  for (std::size_t i = 0; i < list.size(); ++i) list.set(i, with_whole_sizes(list.get(i)));
  return list;
}

/// Runs the operators that make up this one; they are intercepted themselves.
void open_composite(OperatorCall& call, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  for (std::size_t i = 0; i < call.count(); ++i) {
    const auto* alias = call.schema().arguments()[i].alias_info();
    if (alias == nullptr || !alias->isWrite()) call.set(i, with_whole_sizes(call.argument(i)));
  }
  interception::pass_on(interception::divided_key, call.op(), keys, stack);
}

/// In a trial nothing can be gathered.
void fail_trial(const OperatorCall& call) {
  bool is_trial = false;
  TrialFailure failure;
  for (std::size_t i = 0; i < call.count(); ++i) {
    const auto operand = call.operand(i);
    if (operand.is_divided()) {
      is_trial |= operand.ranks->is_trial();
    } else if (operand.tensor.defined() && operand.tensor.has_storage()) {
      failure.whole_operands.push_back(operand.tensor.storage());
    }
  }
  if (is_trial) throw failure;
}

/// Computes with whole tensors on each rank. @collective
void run_whole(OperatorCall& call) {
  const auto name = toString(call.op().operator_name());
  refuse_strides(name);
  refuse_writing(call);
  fail_trial(call);
  GatheredArguments gathered;
  for (std::size_t i = 0; i < call.count(); ++i) call.set(i, gathered.whole(call.argument(i)));
  if (gathered.ranks) gathered.ranks->note_gathered(name, gathered.text);
  call.run();
  gathered.copies.mark_results(call);
}

bool has_divided_argument(const OperatorCall& call) {
  for (std::size_t i = 0; i < call.count(); ++i) {
    if (interception::has_divided_tensor(call.argument(i))) return true;
  }
  return false;
}

void run_by_rule(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  const auto& facts = facts_of(op);
  OperatorCall call(op, *stack);
  Copies views;
  views.take_arguments(call);
  if (!views.empty() && !has_divided_argument(call)) {
    call.run();
  } else if (facts.rule == nullptr && facts.is_composite) {
    open_composite(call, keys, stack);
  } else {
    const PartsOnly here;
    if (facts.rule == nullptr || !facts.rule(call)) run_whole(call);
  }
  views.mark_results(call);
}

// A view of a divided weight has no memory of its own; that of its part tells what is attached to the weight.
void run_divided(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  const auto plain = [&] { run_by_rule(op, keys, stack); };
  if (const auto position = interception::weight_position(op)) {
    const auto part = OperatorCall(op, *stack).operand(*position).tensor;
    if (interception::run_weight_operator(op, *stack, *position, part, plain)) return;
  }
  plain();
}

void expect(bool holds, const char* what) {
  if (holds) return;
  throw Error({.what = text::concat("Tensors cannot be divided with this LibTorch (", TORCH_VERSION, "): ", what),
               .why = "operators on them are intercepted before LibTorch computes",
               .hint = "use LibTorch 2.9 to 2.15, or train without parallel.tensor"});
}

// With one rank, which has the whole tensor as its part.
void try_out() {
  const c10::InferenceMode ordinary(false);  // whatever the caller's mode
  const c10::AutoGradMode with_gradients(true);
  comm::SelfCommunicator self(at::kCPU);
  const auto ranks = std::make_shared<TensorRanks>(self, self);
  ranks->set_strict(true);  // an operator that does not arrive whole has no rule, and throws
  auto part = at::ones({2, 2, 2}, at::kFloat).requires_grad_();
  const auto x = divided_tensor(part, {.dim = 0}, ranks);
  expect(is_divided(at::linear(x, at::ones({2, 2}))), "linear is not intercepted");
  expect(is_divided(at::layer_norm(x, {2})), "layer_norm is not intercepted");
  const auto heads = divided_tensor(part.unsqueeze(0), {.dim = 1}, ranks);
  expect(is_divided(at::scaled_dot_product_attention(heads, heads, heads)), "attention is not intercepted");
  const auto scores = divided_tensor(part.select(0, 0), {.dim = 1}, ranks);
  const auto loss = at::cross_entropy_loss(scores, at::zeros({2}, at::kLong));
  expect(!is_divided(loss), "cross entropy is not intercepted");
  loss.backward();
  expect(part.grad().defined() && ranks->traffic().sums == 2, "a gradient does not reach the part");
}

void check_division() {
  try {
    try_out();
  } catch (const c10::Error& error) {
    expect(false, error.what_without_backtrace());
  } catch (const UsageError& error) {
    expect(false, error.what());
  }
}

}  // namespace

void start_division() {
  interception::handle_divided_tensors(&run_divided, &whole_values);
  [[maybe_unused]] static const bool works = (check_division(), true);
}

}  // namespace hortator::parallel
