#pragma once

#include <ATen/core/Tensor.h>

#include <concepts>
#include <cstddef>
#include <functional>
#include <hortator/export.hpp>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace hortator {

/// Of Accelerator::capture.
struct CaptureOptions {
  int warm_up = 3;  ///< so many steps run as they are written before one is recorded; at least one
};

/// A training step that the device repeats by itself: see Accelerator::capture. It goes with its Accelerator.
class HORTATOR_API CapturedStep {
 public:
  using Step = std::function<at::Tensor(std::span<const at::Tensor> inputs)>;
  class State;

  explicit CapturedStep(std::unique_ptr<State> state);
  ~CapturedStep();
  CapturedStep(CapturedStep&& other) noexcept;
  CapturedStep& operator=(CapturedStep&& other) noexcept;

  /// One step; what it returns, detached.
  template <std::convertible_to<at::Tensor>... Tensors>
  at::Tensor operator()(const Tensors&... inputs) {
    return run({inputs...});
  }

  bool is_recorded() const;            ///< does the device repeat it by now?
  const std::string& why_not() const;  ///< why it never will; empty as long as it may

 private:
  at::Tensor run(const std::vector<at::Tensor>& inputs);

  std::unique_ptr<State> state_;
};

namespace detail {

template <std::size_t>
using TensorInput = const at::Tensor&;

template <typename Step, std::size_t... I>
constexpr bool takes_tensors(std::index_sequence<I...> /*inputs*/) {
  return std::invocable<Step&, TensorInput<I>...>;
}

/// How many tensors the step takes.
template <typename Step, std::size_t Count = 0>
constexpr std::size_t inputs_of() {
  static_assert(Count <= 16,
                "accelerator.capture() takes a function of tensors: [&](const at::Tensor& data, ...) {...}");
  if constexpr (Count > 16) {
    return 0;
  } else if constexpr (takes_tensors<Step>(std::make_index_sequence<Count>())) {
    return Count;
  } else {
    return inputs_of<Step, Count + 1>();
  }
}

[[noreturn]] HORTATOR_API void throw_other_inputs(std::size_t expected, std::size_t got);

/// The step as a function of any number of tensors; one that returns nothing returns none.
template <typename Step>
CapturedStep::Step step_of_inputs(Step step) {
  constexpr auto count = inputs_of<Step>();
  return [step = std::move(step)](std::span<const at::Tensor> inputs) mutable -> at::Tensor {
    if (inputs.size() != count) throw_other_inputs(count, inputs.size());
    return [&]<std::size_t... I>(std::index_sequence<I...> /*inputs*/)->at::Tensor {
      if constexpr (std::is_void_v<std::invoke_result_t<Step&, TensorInput<I>...>>) {
        step(inputs[I]...);
        return {};
      } else {
        return step(inputs[I]...);
      }
    }
    (std::make_index_sequence<count>());
  };
}

}  // namespace detail
}  // namespace hortator
