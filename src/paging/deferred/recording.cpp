#include "paging/deferred/recording.hpp"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/equal.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "interception/claims.hpp"
#include "interception/dispatch_keys.hpp"
#include "interception/operator_use.hpp"
#include "interception/storage_memory.hpp"
#include "interception/weight_operators.hpp"
#include "paging/deferred/plainly.hpp"

namespace hortator::paging {
namespace {

// Operators that only set values, whatever the shape. For others the tensor gets its values first, which is correct as
// well.
constexpr std::array<std::string_view, 19> initialisers = {
    "aten::uniform_",   "aten::normal_",      "aten::fill_",   "aten::zero_",       "aten::random_",
    "aten::bernoulli_", "aten::exponential_", "aten::cauchy_", "aten::log_normal_", "aten::geometric_",
    "aten::mul_",       "aten::add_",         "aten::sub_",    "aten::div_",        "aten::clamp_",
    "aten::clamp_min_", "aten::clamp_max_",   "aten::erfinv_", "aten::neg_"};

bool is_initialiser(const std::string& name) { return std::ranges::find(initialisers, name) != initialisers.end(); }

std::size_t count_tensors(c10::ArrayRef<c10::IValue> arguments) {
  return static_cast<std::size_t>(std::ranges::count_if(arguments, [](const c10::IValue& argument) {
    return argument.isTensor() ? argument.toTensor().defined() : argument.isList();
  }));
}

bool has_own_generator(c10::ArrayRef<c10::IValue> arguments) {
  return std::ranges::any_of(arguments, [](const c10::IValue& argument) { return argument.isGenerator(); });
}

bool covers_its_storage(const at::Tensor& tensor) {
  return tensor.is_non_overlapping_and_dense() && tensor.nbytes() == tensor.storage().nbytes();
}

at::Tensor generator_state() {
  auto generator = at::detail::getDefaultCPUGenerator();
  const std::lock_guard lock(generator.mutex());
  return generator.get_state();
}
void set_generator_state(const at::Tensor& state) {
  auto generator = at::detail::getDefaultCPUGenerator();
  const std::lock_guard lock(generator.mutex());
  generator.set_state(state);
}

}  // namespace

void Recording::add(const at::Tensor& tensor) {
  const std::lock_guard lock(mutex_);
  const auto number = static_cast<int>(deferred_.size());
  interception::claim(tensor.storage(), {.provider = this, .number = number, .keeps_alive = shared_from_this()});
  const bool is_small = tensor.storage().nbytes() < small_bytes;
  deferred_.push_back({.storage = tensor.storage(),
                       .tensor = c10::weak_intrusive_ptr<c10::TensorImpl>(tensor.getIntrusivePtr()),
                       .is_plain = is_small});
  if (!is_small) interception::take_memory(tensor.storage(), not_yet);
  interception::add_key(tensor);
}

at::Tensor Recording::record(const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> arguments) {
  const auto& use = interception::use_of(op);
  if (!use.writes(0) || !is_initialiser(op.schema().name()) || !arguments[0].isTensor()) return {};
  const auto& tensor = arguments[0].toTensor();
  const std::lock_guard lock(mutex_);
  const auto owner = interception::claim_of(tensor);
  if (owner.provider != this || count_tensors(arguments) != 1) return {};
  const bool is_random = op.hasTag(at::Tag::nondeterministic_seeded);
  const bool keeps_order = is_random && order_ == Order::as_written;
  if (keeps_order && has_own_generator(arguments)) return {};  // whose numbers can be drawn once
  auto& target = deferred(owner.number);
  if (target.is_plain) {
    // Random initialisers set all elements, so the present values need not be kept.
    if (!is_random || !covers_its_storage(tensor)) return {};
    target.is_plain = false;
    interception::take_memory(tensor.storage(), not_yet);
  }
  if (keeps_order && !begin_state_.defined()) {
    const Plainly plainly;
    begin_state_ = generator_state();
    present_state_ = begin_state_;
  }
  target.steps.push_back(steps_.size());
  target.needs_order |= keeps_order;
  torch::jit::Stack noted(arguments.begin(), arguments.end());
  noted[0] = alias_of(tensor);
  steps_.push_back({.op = op, .arguments = std::move(noted), .storage = owner.number, .is_random = is_random});
  return tensor;
}

void Recording::enter(int storage, interception::Access /*access*/) {
  const std::lock_guard lock(mutex_);
  fill(storage);
}

void Recording::hand_over(int storage, interception::Content content) {
  const std::lock_guard lock(mutex_);
  if (content == interception::Content::keep && !deferred(storage).is_plain) {
    fill(storage);
  } else {
    release_tensor(storage);
  }
}

void Recording::end() {
  const std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < deferred_.size(); ++i) {
    if (deferred_[i].storage && deferred_[i].is_plain) release_tensor(static_cast<int>(i));
  }
}

void Recording::catch_up() {
  const std::lock_guard lock(mutex_);
  if (!begin_state_.defined()) return;
  const Plainly plainly;
  pass(steps_.size());
  set_generator_state(present_state_);
  begin_state_.reset();
}

void Recording::fill(int storage) {
  auto& target = deferred(storage);
  if (!target.storage || target.is_plain) return;
  const auto steps = target.steps;
  if (target.needs_order) {
    draw(steps);
  } else {
    for (const auto step : steps) run(steps_[step]);
  }
  if (interception::memory_of(target.storage) == nullptr)
    interception::own_memory(target.storage, interception::new_memory(target.storage.nbytes()));
  release_tensor(storage);
}

// Runs the steps of one tensor with their random numbers. Afterwards restores the generator's state; if no random step
// is left, and the program has not drawn since, leaves it as if all had been drawn at construction.
void Recording::draw(const std::vector<std::size_t>& steps) {
  const Plainly plainly;
  const auto now = generator_state();
  for (const auto number : steps) {
    auto& step = steps_[number];
    if (step.is_random) pass(number);
    const bool is_passed = step.state.defined();
    if (step.is_random) set_generator_state(is_passed ? std::exchange(step.state, {}) : present_state_);
    run(step);
    if (step.is_random && !is_passed) present_state_ = generator_state();
  }
  const bool is_random_left = std::any_of(steps_.begin() + static_cast<std::ptrdiff_t>(done_), steps_.end(),
                                          [](const Step& step) { return step.is_random && !step.is_done; });
  const bool has_drawn = !begin_state_.defined() || !at::equal(now, begin_state_);
  set_generator_state(is_random_left || has_drawn ? now : present_state_);
  if (!is_random_left && !has_drawn) begin_state_ = present_state_;  // more may be recorded
}

// Draws the random numbers of the steps before `end`, and forgets them: a tensor that needs them later draws them
// again, so that it has no memory until then.
void Recording::pass(std::size_t end) {
  if (done_ >= end) return;
  set_generator_state(present_state_);
  for (; done_ < end; ++done_) {
    auto& step = steps_[done_];
    if (!step.is_random || step.is_done) continue;
    const bool is_needed = static_cast<bool>(deferred(step.storage).storage);
    if (is_needed) step.state = generator_state();
    auto stack = is_needed ? step.arguments : std::exchange(step.arguments, {});
    const auto& target = stack[0].toTensor();
    stack[0] = at::empty_strided(target.sizes(), target.strides(), target.options());
    step.op.callBoxed(stack);
  }
  present_state_ = generator_state();
}

void Recording::run(Step& step) {
  if (std::exchange(step.is_done, true)) return;
  const Plainly plainly;
  const auto& storage = deferred(step.storage).storage;
  auto stack = std::exchange(step.arguments, {});
  if (interception::memory_of(storage) == nullptr)
    interception::own_memory(storage, interception::new_memory(storage.nbytes()));
  step.op.callBoxed(stack);
}

void Recording::release_tensor(int storage) {
  auto& target = deferred(storage);
  if (const auto tensor = target.tensor.lock()) interception::remove_key_of_claim(at::Tensor(tensor));
  interception::disclaim(std::exchange(target.storage, at::Storage()));
}

bool awaits_construction(const at::Tensor& tensor) {
  return dynamic_cast<const DeferredProvider*>(interception::claim_of(tensor).provider) != nullptr;
}

}  // namespace hortator::paging
