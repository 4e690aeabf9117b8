#include "interception/claimed_operators.hpp"

#include <ATen/autocast_mode.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/ones.h>
#include <c10/core/GradMode.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/util/SmallVector.h>
#include <torch/version.h>

#include <hortator/error.hpp>
#include <optional>

#include "core/text/text.hpp"
#include "interception/claims.hpp"
#include "interception/dispatch_keys.hpp"
#include "interception/operator_use.hpp"
#include "interception/registration.hpp"
#include "interception/storage_memory.hpp"
#include "interception/weight_operators.hpp"

namespace hortator::interception {

namespace {

// Whether autocast is on and casts `tensor`. Rules of operators on tensors that are divided among ranks, or that lie on
// several devices, may read it before they cast it.
bool is_cast_now(const at::Tensor& tensor) {
  return tensor.scalar_type() == at::kFloat && at::autocast::is_autocast_enabled(tensor.device().type()) &&
         !carries_divided_key(tensor) && !c10::impl::tls_is_dispatch_key_included(meeting_key);
}

}  // namespace

/// Keeps storages present for one operator; the destructor leaves them.
class Entered {
 public:
  Entered() = default;
  ~Entered() {
    for (const auto& claim : claims_) claim.provider->leave(claim.number);
  }
  Entered(const Entered&) = delete;
  Entered& operator=(const Entered&) = delete;

  void enter(const at::Tensor& tensor, Access access) {
    if (!tensor.defined() || !carries_key(tensor)) return;
    auto claim = claim_of(tensor);
    if (!claim) return require_memory(tensor.storage());
    claim.provider->enter(claim.number, access == Access::read_cast && !is_cast_now(tensor) ? Access::read : access);
    claims_.push_back(std::move(claim));
  }

 private:
  c10::SmallVector<Claim, 4> claims_;
};

namespace {

void enter_all(Entered& entered, const c10::IValue& value, Access access) {
  if (value.isTensor()) {
    entered.enter(value.toTensor(), access);
  } else if (value.isList()) {
    for (const auto& element : value.toListRef()) enter_all(entered, element, access);
  }
}

Access access_to(const OperatorUse& use, std::size_t argument) {
  if (use.writes(argument)) return Access::write;
  return use.casts ? Access::read_cast : Access::read;
}

// The parts of an operator are not intercepted: one composite operator (a linear layer, an LSTM) is one event, and all
// that it uses stays until it ends.
void run_present(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  const auto& use = use_of(op);
  Entered entered;
  const auto arguments = torch::jit::last(*stack, use.arguments);
  for (std::size_t i = 0; i < arguments.size(); ++i) enter_all(entered, arguments[i], access_to(use, i));
  const c10::impl::ExcludeDispatchKeyGuard inner(paged_key);
  pass_on(paged_key, op, keys, stack);
}

/// Whether an adapter, or a packed weight, computes the operator.
bool run_attached(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  const auto position = weight_position(op);
  if (!position) return false;
  const auto& weight = torch::jit::peek(*stack, *position, op.schema().arguments().size());
  if (!weight.isTensor()) return false;
  const auto seen = weight.toTensor();
  return run_weight_operator(op, *stack, *position, seen, [&] { run_present(op, keys, stack); });
}

void run_paged(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  if (use_of(op).leaves_bytes_alone) {
    pass_on(paged_key, op, keys, stack);
  } else if (!run_attached(op, keys, stack)) {
    run_present(op, keys, stack);
  }
}

/// Lends one storage its bytes while an operator uses it.
class Lender final : public StorageProvider {
 public:
  explicit Lender(at::Storage storage) : storage_(std::move(storage)) {
    claim(storage_, {.provider = this});
    take_memory(storage_, "absent");
  }
  ~Lender() override { disclaim(storage_); }
  Lender(const Lender&) = delete;
  Lender& operator=(const Lender&) = delete;

  void enter(int /*number*/, Access /*access*/) override {
    ++entries;
    if (inside_++ == 0) lend_memory(storage_, reinterpret_cast<std::byte*>(values_));
  }
  void leave(int /*number*/) noexcept override {
    if (--inside_ == 0) take_memory(storage_, "absent");
  }
  void hand_over(int /*number*/, Content /*content*/) override {}

  int entries = 0;

 private:
  at::Storage storage_;
  float values_[2] = {3, 5};
  int inside_ = 0;
};

void expect(bool holds, const char* what) {
  if (holds) return;
  throw Error({.what = text::concat("Parameters cannot be paged with this LibTorch (", TORCH_VERSION, "): ", what),
               .why = text::concat("operators are intercepted by the dispatch key ", c10::toString(paged_key)),
               .hint = "use LibTorch 2.9 to 2.15, or train without offloading and sharding of parameters"});
}

void try_out() {
  const c10::InferenceMode ordinary(false);  // whatever the caller's mode
  const c10::AutoGradMode with_gradients(true);
  auto weight = at::ones({2}, at::kFloat).requires_grad_();
  auto input = at::ones({2}, at::kFloat).requires_grad_();
  Lender lender(weight.storage());
  add_key(weight);
  const auto view = weight.view({2, 1});
  expect(lender.entries == 0 && carries_key(view), "a view does not inherit the key, or reads");
  const auto product = at::mul(input, weight);
  expect(lender.entries == 1, "an operator is not intercepted");
  expect(!carries_key(product), "a result has the key");
  product.sum().backward();
  expect(lender.entries == 2, "backward is not intercepted");
  const bool is_right = product.const_data_ptr<float>()[1] == 5 && input.grad().const_data_ptr<float>()[0] == 3;
  expect(is_right, "an operator computes a wrong result");
}

}  // namespace

void start_interception() {
  [[maybe_unused]] static const bool is_installed =
      (intercept_all(paged_key, as_kernel<&run_paged>(), "Parameters cannot be paged"), true);
  [[maybe_unused]] static const bool works = (check_interception(), true);
}

Hold::Hold(std::span<const at::Tensor> tensors, Access access) {
  try {
    for (const auto& tensor : tensors) {
      auto claim = claim_of(tensor);
      if (!claim) continue;
      held_.reserve(held_.size() + 1);
      claim.provider->enter(claim.number, access);
      held_.push_back(std::move(claim));
    }
  } catch (...) {
    for (const auto& claim : held_) claim.provider->leave(claim.number);
    throw;
  }
}

Hold::~Hold() {
  for (const auto& claim : held_) claim.provider->leave(claim.number);
}

void check_interception() {
  try {
    try_out();
  } catch (const c10::Error& error) {
    expect(false, error.what_without_backtrace());
  }
}

}  // namespace hortator::interception
