#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <functional>
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
  /// Moves the model to the host. `move` moves it to a device.
  CpuOffloadHook(std::function<void(c10::Device)> move, c10::Device device, std::optional<CpuOffloadHook> previous);

  /// Moves the model to the device, after the model of `previous` has moved to the host. The model does this when it is
  /// called.
  void load();
  /// Moves the model to the host.
  void offload();
  /// Ends the moving: the model stays where it is.
  void remove();
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

  /// Runs forward on the device, to which tensors among the arguments are copied.
  template <typename... Args>
  auto operator()(Args&&... args) {
    hook_.load();
    return model_->forward(on_device(std::forward<Args>(args))...);
  }
  auto* operator->() { return &*model_; }
  const M& unwrap() const { return model_; }
  CpuOffloadHook& hook() { return hook_; }

 private:
  template <typename Arg>
  decltype(auto) on_device(Arg&& argument) const {
    if constexpr (std::is_same_v<std::remove_cvref_t<Arg>, at::Tensor>) {
      return argument.defined() ? argument.to(hook_.device()) : at::Tensor();
    } else {
      return std::forward<Arg>(argument);
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
/// A model that does not fit on the device as a whole is a case for cpu_offload().
template <Module M>
requires(!ModuleObject<M>) [[nodiscard]] auto cpu_offload_with_hook(const M& model, c10::Device device,
                                                                    std::optional<CpuOffloadHook> previous = {}) {
  auto kept = model;
  auto move = [kept](c10::Device to) mutable { kept->to(to); };
  return ModelWithHook<M>(model, CpuOffloadHook(std::move(move), device, std::move(previous)));
}

}  // namespace hortator
