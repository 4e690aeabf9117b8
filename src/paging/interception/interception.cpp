#include "paging/interception/interception.hpp"

#include <ATen/core/ivalue.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/library.h>

#include <hortator/error.hpp>
#include <optional>

#include "core/text/text.hpp"
#include "paging/interception/entered.hpp"
#include "paging/interception/interception_check.hpp"
#include "paging/interception/operator_use.hpp"

namespace hortator::paging {
namespace {

constexpr c10::DispatchKeySet after_paging(c10::DispatchKeySet::FULL_AFTER, paged_key);

void enter_all(Entered& entered, const c10::IValue& value, Access access) {
  if (value.isTensor()) {
    entered.enter(value.toTensor(), access);
  } else if (value.isList()) {
    for (const auto& element : value.toListRef()) enter_all(entered, element, access);
  }
}

// The parts of an operator are not intercepted: one composite operator (a linear layer, an LSTM) is one event, and all
// that it uses stays until it ends.
void run_paged(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  const auto& use = use_of(op);
  if (use.leaves_bytes_alone) {
    op.redispatchBoxed(keys & after_paging, stack);
    return;
  }
  Entered entered;
  const auto arguments = torch::jit::last(*stack, use.arguments);
  for (std::size_t i = 0; i < arguments.size(); ++i)
    enter_all(entered, arguments[i], use.writes(i) ? Access::write : Access::read);
  const c10::impl::ExcludeDispatchKeyGuard inner(paged_key);
  op.redispatchBoxed(keys & after_paging, stack);
}

// A key can have one fallback in a process.
torch::Library install_paging() {
  try {
    torch::Library library(torch::Library::IMPL, "_", std::make_optional(paged_key), __FILE__, __LINE__);
    library.fallback(torch::CppFunction::makeFromBoxedFunction<&run_paged>());
    return library;
  } catch (const c10::Error& error) {
    throw Error({.what = text::concat("Parameters cannot be paged: ", error.what_without_backtrace()),
                 .why = text::concat("operators are intercepted by the dispatch key ", c10::toString(paged_key),
                                     ", which another library of this process uses")});
  }
}

}  // namespace

void start_interception() {
  // Never destroyed: operators may run while static objects are destroyed.
  [[maybe_unused]] static const auto* library = new torch::Library(install_paging());
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

}  // namespace hortator::paging
