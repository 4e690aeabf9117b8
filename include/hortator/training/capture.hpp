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

/// Options of Accelerator::capture().
struct CaptureOptions {
  int warm_up = 3;  ///< number of steps that run normally before one is recorded; at least one
};

/// A training step that the device replays; see Accelerator::capture(). Valid as long as its Accelerator.
///
/// The function is a whole training step of prepared objects: forward, backward(), clip_grad_norm_(), optimizer.step(),
/// schedule.step(), zero_grad(). It is recorded after a few steps (CaptureOptions::warm_up). Learning rates, step
/// counts and random numbers continue as without recording. Inputs of another shape than the recorded ones run as
/// written. Other work of the function on the host is not repeated by a replay: put what reads numbers of the device
/// (item()) or prints after the step.
///
/// Not recorded: steps on the CPU, on several ranks, with Precision::fp16 unless GradScalerOptions::late_verdict is on,
/// with ZeRO, offloaded modules, recompute(), reproducible = true, gradient accumulation, protection, record.operators,
/// fused_optimizer = false, or optimizers without a fused kernel. After a change of what the recording relies on
/// (gradients that were removed while the step adds to them, weights that were moved or frozen, train() and eval(),
/// hooks that were added or removed, loaded moments, other options than the learning rate) the step is recorded again.
/// Replays call no hook.
class HORTATOR_API CapturedStep {
 public:
  using Step = std::function<at::Tensor(std::span<const at::Tensor> inputs)>;
  class State;

  explicit CapturedStep(std::unique_ptr<State> state);
  ~CapturedStep();
  CapturedStep(CapturedStep&& other) noexcept;
  CapturedStep& operator=(CapturedStep&& other) noexcept;

  /// Runs one step, and returns its result, detached.
  template <std::convertible_to<at::Tensor>... Tensors>
  at::Tensor operator()(const Tensors&... inputs) {
    return run({inputs...});
  }

  bool is_recorded() const;            ///< whether the device replays the step by now
  const std::string& why_not() const;  ///< why the step cannot be recorded; empty while it may be

 private:
  at::Tensor run(const std::vector<at::Tensor>& inputs);

  std::unique_ptr<State> state_;
};

namespace detail {

/// A tensor parameter, whatever its index. (Clang 16 does not expand a pack in an alias that ignores it.)
template <std::size_t>
struct TensorInput {
  using Type = const at::Tensor&;
};

template <typename Step, std::size_t... I>
constexpr bool takes_tensors(std::index_sequence<I...> /*inputs*/) {
  return std::invocable<Step&, typename TensorInput<I>::Type...>;
}

/// The number of tensors that the step takes.
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

/// The step as a function of a span of tensors. A void step returns an undefined tensor.
template <typename Step>
CapturedStep::Step step_of_inputs(Step step) {
  constexpr auto count = inputs_of<Step>();
  return [step = std::move(step)](std::span<const at::Tensor> inputs) mutable -> at::Tensor {
    if (inputs.size() != count) throw_other_inputs(count, inputs.size());
    return [&]<std::size_t... I>(std::index_sequence<I...> /*inputs*/)->at::Tensor {
      if constexpr (std::is_void_v<std::invoke_result_t<Step&, typename TensorInput<I>::Type...>>) {
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
