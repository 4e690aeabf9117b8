#include "interception/operator_handlers.hpp"

#include <ATen/core/ivalue.h>

#include <algorithm>
#include <atomic>

#include "interception/dispatch_keys.hpp"

namespace hortator::interception {
namespace {

std::atomic<OperatorHandler> divided = nullptr, meeting = nullptr;
std::atomic<WholeValues> whole_of_divided = nullptr;

void run(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  const auto arguments = torch::jit::last(*stack, op.schema().arguments().size());
  if (const auto handler = divided.load(std::memory_order_relaxed);
      handler != nullptr && std::ranges::any_of(arguments, has_divided_tensor))
    return handler(op, keys, stack);
  if (const auto handler = meeting.load(std::memory_order_relaxed);
      handler != nullptr && c10::impl::tls_is_dispatch_key_included(meeting_key))
    return handler(op, keys, stack);
  pass_on(meeting_key, op, keys, stack);
}

void install_once() {
  [[maybe_unused]] static const bool is_installed =
      (intercept_all(meeting_key, as_kernel<&run>(), "Operators cannot be intercepted"), true);
}

}  // namespace

bool has_divided_tensor(const c10::IValue& value) {
  if (value.isTensor()) return value.toTensor().defined() && carries_divided_key(value.toTensor());
  return value.isList() && std::ranges::any_of(value.toListRef(), has_divided_tensor);
}

at::Tensor whole_values(const at::Tensor& tensor) {
  return has_divided_tensor(tensor) ? whole_of_divided.load()(tensor) : tensor;
}

void handle_divided_tensors(OperatorHandler handler, WholeValues whole) {
  whole_of_divided = whole;
  divided = handler;
  install_once();
}

void handle_meetings(OperatorHandler handler) {
  meeting = handler;
  install_once();
}

}  // namespace hortator::interception
