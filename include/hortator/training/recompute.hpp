#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/GradMode.h>

#include <functional>
#include <hortator/export.hpp>
#include <hortator/model.hpp>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace hortator {

/// Whether a callable is being recomputed now, by a backward pass that needs its activations. For forward functions
/// with side effects that must happen once.
HORTATOR_API bool is_recomputing();

namespace detail {

/// What a second run of a call needs.
struct RecomputedCall {
  std::vector<at::Tensor> arguments = {};  ///< the tensors among the arguments
  std::vector<at::Tensor> buffers = {};    ///< buffers that the call changes, and must change once
  std::function<void(const std::vector<at::Tensor>&)> rerun = {};
};

/// While it lives, tensors that autograd saves on this thread are not kept; backward recomputes them by the call.
class HORTATOR_API Recording {
 public:
  explicit Recording(RecomputedCall call);
  ~Recording();
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  /// Ends the first run. Throws if it has done something that a second run cannot repeat.
  void finish();

 private:
  class Scope;
  std::unique_ptr<Scope> scope_;
};

/// A callable and its arguments except tensors, which are passed to each run.
template <typename Callable, typename... Args>
class KeptCall {
 public:
  template <typename C>
  explicit KeptCall(C&& callable, const Args&... args) : callable_(std::forward<C>(callable)), args_(args...) {
    std::apply([](auto&... kept) { (forget(kept), ...); }, args_);
  }

  template <typename... Now>
  decltype(auto) operator()(Now&&... now) {
    constexpr bool is_pointer_to_object =
        std::is_pointer_v<Callable> && std::is_class_v<std::remove_pointer_t<Callable>>;
    if constexpr (is_pointer_to_object || ModuleHolder<Callable> || ModulePointer<Callable>) {
      return callable_->forward(std::forward<Now>(now)...);
    } else {
      return std::invoke(callable_, std::forward<Now>(now)...);
    }
  }

  void rerun(const std::vector<at::Tensor>& tensors) {
    auto args = args_;
    std::size_t next = 0;
    std::apply([&](auto&... kept) { (remember(kept, tensors, next), ...); }, args);
    std::apply(*this, args);
  }

 private:
  template <typename T>
  static void forget(T& kept) {
    if constexpr (std::is_same_v<T, at::Tensor>) kept.reset();
  }
  template <typename T>
  static void remember(T& kept, const std::vector<at::Tensor>& tensors, std::size_t& next) {
    if constexpr (std::is_same_v<T, at::Tensor>) kept = tensors[next++];
  }

  Callable callable_;
  std::tuple<Args...> args_;
};

template <typename T>
void add_tensor(std::vector<at::Tensor>& tensors, const T& argument) {
  if constexpr (std::is_same_v<T, at::Tensor>) tensors.push_back(argument);
}

/// Borrows a module object, and copies everything else; a copy of a holder or shared_ptr shares the module.
template <typename Callable>
auto kept_callable(Callable&& callable) {
  if constexpr (ModuleObject<std::remove_cvref_t<Callable>>) {
    static_assert(std::is_lvalue_reference_v<Callable>,
                  "recompute() borrows a module: keep it in a variable that lives until the end of backward");
    return &callable;
  } else {
    return std::decay_t<Callable>(std::forward<Callable>(callable));
  }
}

template <typename Callable>
std::vector<at::Tensor> buffers_of(const Callable& callable) {
  if constexpr (ModuleObject<Callable>) {
    return callable.buffers();
  } else if constexpr (Module<Callable>) {
    return callable->buffers();
  } else {
    return {};
  }
}

}  // namespace detail

/// Gradient checkpointing: `auto y = hortator::recompute(block, x);` computes `block(x)`, but keeps only the arguments
/// for backward. When backward needs the activations, block(x) runs a second time. Only activations between blocks stay
/// in memory. The cost is one more forward pass, which ends at the last tensor that backward needs.
///
/// `callable` is a module (by holder, shared_ptr or variable) or any function object. Tensor arguments need not require
/// gradients; other arguments are copied. Results may have any number and type. Gradients are bitwise those of the
/// plain call, since autograd's graph is the same: captured parameters, hooks, averaging over ranks during backward,
/// accumulation, autograd::grad, retain_graph and double backward work as usual. The second run has the random numbers
/// (dropout) and autocast settings of the first. Calls nest. Without gradients (NoGradGuard) it is a plain call.
///
/// The second run must repeat the first: other shapes or types, and arguments or parameters that were changed in place
/// in between, throw an error. A module's buffers (BatchNorm's running statistics) change once. Other side effects
/// happen twice, or partly; check is_recomputing(). The second run may be ended early by an exception that does not
/// derive from std::exception: do not catch it. Tensors within other arguments, or captured by the callable, are kept
/// as they are; objects that it captures by reference must live until the end of backward. Not available in a process
/// that has loaded Python's torch.
template <typename Callable, typename... Args>
auto recompute(Callable&& callable, Args&&... args) {
  static_assert(
      !std::derived_from<std::remove_cvref_t<Callable>, ModelBase>,
      "recompute() is for parts of a model, within its forward; a prepared model communicates when it is called");
  using Kept =
      detail::KeptCall<decltype(detail::kept_callable(std::forward<Callable>(callable))), std::decay_t<Args>...>;
  detail::RecomputedCall call;
  if (at::GradMode::is_enabled()) {
    (detail::add_tensor(call.arguments, args), ...);
    call.buffers = detail::buffers_of(callable);
  }
  auto kept = std::make_shared<Kept>(detail::kept_callable(std::forward<Callable>(callable)), args...);
  using Result = std::decay_t<decltype((*kept)(std::forward<Args>(args)...))>;
  if (!at::GradMode::is_enabled()) return static_cast<Result>((*kept)(std::forward<Args>(args)...));
  call.rerun = [kept](const std::vector<at::Tensor>& tensors) { kept->rerun(tensors); };
  detail::Recording recording(std::move(call));
  if constexpr (std::is_void_v<Result>) {
    (*kept)(std::forward<Args>(args)...);
    recording.finish();
  } else {
    Result result = (*kept)(std::forward<Args>(args)...);
    recording.finish();
    return result;
  }
}

}  // namespace hortator
