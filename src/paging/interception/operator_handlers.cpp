#include "paging/interception/operator_handlers.hpp"

#include <ATen/core/ivalue.h>
#include <torch/library.h>

#include <algorithm>
#include <atomic>
#include <hortator/error.hpp>
#include <optional>

#include "core/text/text.hpp"
#include "paging/interception/storage_state.hpp"

namespace hortator::paging {
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
  op.redispatchBoxed(keys & c10::DispatchKeySet(c10::DispatchKeySet::FULL_AFTER, meeting_key), stack);
}

// A key can have one fallback in a process.
torch::Library install() {
  try {
    torch::Library library(torch::Library::IMPL, "_", std::make_optional(meeting_key), __FILE__, __LINE__);
    library.fallback(torch::CppFunction::makeFromBoxedFunction<&run>());
    return library;
  } catch (const c10::Error& error) {
    throw Error({.what = text::concat("Operators cannot be intercepted: ", error.what_without_backtrace()),
                 .why = text::concat("this needs the dispatch key ", c10::toString(meeting_key),
                                     ", which another library of this process uses")});
  }
}

void install_once() {
  // Never destroyed: operators may run while static objects are destroyed.
  [[maybe_unused]] static const auto* library = new torch::Library(install());
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

}  // namespace hortator::paging
