#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <concepts>
#include <functional>
#include <hortator/detail/each_tensor.hpp>
#include <hortator/export.hpp>
#include <hortator/model.hpp>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

// Models of a pipeline that take turns on a device.

namespace hortator {

/// Moves a model between the host and a device. Copies are handles of the same hook.
class HORTATOR_API CpuOffloadHook {
 public:
  /// Constructs the hook and moves the model to the host. `move` moves it to a device.
  CpuOffloadHook(std::function<void(c10::Device)> move, c10::Device device, std::optional<CpuOffloadHook> previous);

  /// Moves the model to the device, after the model of `previous` has moved to the host. The model does this when it is
  /// called.
  void load();
  /// Moves the model to the host.
  void offload();
  /// Ends the moving: the model stays where it is, and load() and offload() do nothing from now on.
  void remove();
  bool was_removed() const;
  c10::Device device() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

/// A model that is on the host between its uses. Methods called by -> do not move it.
template <Module M>
requires(!ModuleObject<M>) class ModelWithHook {
 public:
  ModelWithHook(M model, CpuOffloadHook hook) : model_(std::move(model)), hook_(std::move(hook)) {}

  /// Runs forward on the device with copies of the arguments whose tensors are there (detail::each_tensor). Passes an
  /// argument on as it is if it cannot be copied. If forward changes one of its arguments, so that it does not take
  /// copies, all variables other than tensors are passed on as they are. After hook().remove() all tensors stay where
  /// they are.
  template <typename... Args>
  auto operator()(Args&&... args) {
    hook_.load();
    if constexpr (requires { model_->forward(on_device(std::forward<Args>(args))...); }) {
      return model_->forward(on_device(std::forward<Args>(args))...);
    } else {
      return model_->forward(unless_variable(std::forward<Args>(args))...);
    }
  }
  auto* operator->() { return &*model_; }
  const M& unwrap() const { return model_; }
  CpuOffloadHook& hook() { return hook_; }

 private:
  // A copy of an object with virtual functions could lose its derived class.
  template <typename Arg>
  decltype(auto) on_device(Arg&& argument) const {
    using Value = std::remove_cvref_t<Arg>;
    if constexpr (std::constructible_from<Value, Arg> && std::move_constructible<Value> &&
                  !std::is_polymorphic_v<Value>) {
      Value copy(std::forward<Arg>(argument));
      if (!hook_.was_removed()) {
        detail::each_tensor(copy, [this](at::Tensor& tensor) {
          if (tensor.defined()) tensor = tensor.to(hook_.device());
        });
      }
      return copy;
    } else {
      return std::forward<Arg>(argument);
    }
  }
  template <typename Arg>
  decltype(auto) unless_variable(Arg&& argument) const {
    if constexpr (std::is_lvalue_reference_v<Arg> && !std::is_const_v<std::remove_reference_t<Arg>> &&
                  !std::is_same_v<std::remove_cvref_t<Arg>, at::Tensor>) {
      return std::forward<Arg>(argument);
    } else {
      return on_device(std::forward<Arg>(argument));
    }
  }

  M model_;
  CpuOffloadHook hook_;
};

/// Moves a model, given by its holder or shared_ptr, to the host, and to `device` whenever it is called. It stays there
/// until hook().offload(), or until a model is called that has its hook as `previous`, so that models of a pipeline
/// take turns on the device, and one that is called in a loop moves once:
///
///     auto encoder = hortator::cpu_offload_with_hook(encoder_net, at::kCUDA);
///     auto decoder = hortator::cpu_offload_with_hook(decoder_net, at::kCUDA, encoder.hook());
///     const auto features = encoder(text);
///     for (auto& step : steps) image = decoder(image, features);  // the encoder is on the host
///     decoder.hook().offload();
///
/// A model that does not fit on the device as a whole is a case for dispatch_model().
template <Module M>
requires(!ModuleObject<M>) [[nodiscard]] auto cpu_offload_with_hook(const M& model, c10::Device device,
                                                                    std::optional<CpuOffloadHook> previous = {}) {
  auto kept = model;
  auto move = [kept](c10::Device to) mutable { kept->to(to); };
  return ModelWithHook<M>(model, CpuOffloadHook(std::move(move), device, std::move(previous)));
}

}  // namespace hortator
