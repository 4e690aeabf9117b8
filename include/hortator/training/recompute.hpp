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

/// Is a callable being run again now, by a backward pass that needs its activations? For forward functions with side
/// effects that must happen once.
HORTATOR_API bool is_recomputing();

namespace detail {

/// What it takes to make a call again.
struct RecomputedCall {
  std::vector<at::Tensor> arguments = {};  ///< those that are tensors
  std::vector<at::Tensor> buffers = {};    ///< which the call changes, and must change once
  std::function<void(const std::vector<at::Tensor>&)> again = {};
};

/// From its construction to its end, what autograd saves on this thread is left out, to be made again by the call.
class HORTATOR_API Recording {
 public:
  explicit Recording(RecomputedCall call);
  ~Recording();
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  /// The first run is over: throws if it has done what a second run cannot repeat.
  void finish();

 private:
  class Scope;
  std::unique_ptr<Scope> scope_;
};

/// A callable and its arguments, but for tensors: those are given anew each time.
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

  void again(const std::vector<at::Tensor>& tensors) {
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

/// A module by value is borrowed, everything else is copied: of holders and shared_ptr that is a share.
template <typename Callable>
auto kept_callable(Callable&& callable) {
  if constexpr (ModuleObject<std::remove_cvref_t<Callable>>) {
    static_assert(std::is_lvalue_reference_v<Callable>,
                  "recompute() borrows a module: keep it in a variable that lives until backward is over");
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

/// Gradient checkpointing: `auto y = hortator::recompute(block, x);` is `block(x)`, but of what happens within, nothing
/// is kept for backward except the arguments. When backward comes to it, block(x) is run once more, and what autograd
/// needs is taken from that. Memory for activations shrinks to those between blocks; time grows by a forward pass (its
/// end, from the last tensor that backward needs, is left out).
///
/// `callable` is a module (by holder, shared_ptr or variable) or any function object; of the arguments those that are
/// tensors need not require gradients, others are copied; any number of results of any type. Gradients are bitwise
/// those of the plain call: autograd's graph is the same, so parameters that the callable captures, hooks, averaging
/// over ranks while backward goes on, accumulation, autograd::grad, retain_graph and double backward work as ever.
/// Random numbers (dropout) and autocast are in the second run what they were in the first. Calls nest. Without
/// gradients (NoGradGuard) it is a plain call.
///
/// The second run must do what the first did; what does not is an error that says so: other shapes or types, arguments
/// or parameters changed in place in between. A module's buffers (BatchNorm's running statistics) change once. Other
/// side effects happen twice, or in part: is_recomputing() tells. Exceptions that are thrown to end the second run
/// early do not derive from std::exception and must not be kept from passing. Tensors inside of other arguments, or
/// captured by the callable, are kept as they are; what it captures by reference must live until backward is over. Not
/// within a process that has loaded Python's torch.
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
  call.again = [kept](const std::vector<at::Tensor>& tensors) { kept->again(tensors); };
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
