#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <concepts>
#include <hortator/detail/each_tensor.hpp>
#include <hortator/detail/hooked_arguments.hpp>
#include <hortator/export.hpp>
#include <hortator/training/autocast.hpp>
#include <hortator/training/model_hook.hpp>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace hortator {

namespace step {
class ModelCore;
}

/// The models that prepare() accepts: a module by its holder (TORCH_MODULE), by shared_ptr, or an object of a class
/// derived from nn::Module.
template <typename T>
concept ModuleHolder = requires {
  typename T::ContainedType;
}
&&std::derived_from<typename T::ContainedType, torch::nn::Module>;
template <typename T>
concept ModulePointer = requires(T t) {
  typename T::element_type;
  requires std::derived_from<typename T::element_type, torch::nn::Module>;
  requires std::same_as<T, std::shared_ptr<typename T::element_type>>;
};
template <typename T>
concept ModuleObject = std::derived_from<T, torch::nn::Module>;
template <typename T>
concept Module = ModuleHolder<T> || ModulePointer<T> || ModuleObject<T>;

namespace detail {
template <typename M>
requires Module<std::remove_const_t<M>>
auto& module_of(M& model) {
  if constexpr (ModuleObject<std::remove_const_t<M>>) {
    return model;
  } else {
    return *model;
  }
}
template <Module M>
struct Contained {
  using Type = M;
};
template <ModuleHolder M>
struct Contained<M> {
  using Type = typename M::ContainedType;
};
template <ModulePointer M>
struct Contained<M> {
  using Type = typename M::element_type;
};

/// Converts fp16 and bf16 to fp32. Other types stay.
HORTATOR_API void to_float32(at::Tensor& tensor);
}  // namespace detail

/// The part of a prepared model that does not depend on the module's type.
class HORTATOR_API ModelBase {
 public:
  explicit ModelBase(std::shared_ptr<step::ModelCore> core) : core_(std::move(core)) {}

  std::vector<at::Tensor> parameters() const;
  void train(bool on = true) const;
  void eval() const { train(false); }
  void zero_grad() const;
  /// Adds a hook to those of this model, which are called in the order in which they were added.
  ModelHookHandle add_hook(ModelHook hook) const;
  /// Adds a hook to a layer of one tensor that a torch::nn::Sequential in the model calls, by the layer's name
  /// ("layers.2"). C++ calls the forward of other modules directly: they have none, and naming one is a UsageError.
  ModelHookHandle add_hook(const std::string& layer, ModelHook hook) const;

  step::ModelCore& core() const { return *core_; }

 protected:
  void before_forward() const;
  bool has_hooks() const;
  bool has_argument_hooks() const;
  std::vector<at::Tensor> changed_arguments(const std::vector<at::Tensor>& arguments) const;
  void after_forward(std::vector<at::Tensor>& results) const;
  bool is_mixed() const;
  void to_output_type(at::Tensor& tensor) const;
  [[nodiscard]] Autocast autocast() const;

 private:
  std::shared_ptr<step::ModelCore> core_;
};

/// A prepared model. Calling it runs the module's forward, and backward averages its gradients over all ranks. It keeps
/// holders and shared_ptr alive, and borrows a plain object.
///
/// With mixed precision only this call computes in 16 bits. Other methods of the module, called by ->, do not, unless
/// they are within accelerator.autocast(). Results are converted to fp32, or to MixedPrecisionPolicy::output: tensors,
/// and tensors in optionals, containers, maps, tuples, plain structs of up to ten fields, and classes with `auto
/// fields() { return std::tie(a, b); }`. Tensors in results of other types stay as they are.
template <Module M>
class Model : public ModelBase {
 public:
  using ModuleType = typename detail::Contained<M>::Type;
  using Kept = std::conditional_t<ModuleObject<M>, M*, M>;

  Model(Kept kept, std::shared_ptr<step::ModelCore> core) : ModelBase(std::move(core)), kept_(std::move(kept)) {}

  template <typename... Args>
  decltype(auto) operator()(Args&&... args) {
    before_forward();
    if (!has_argument_hooks()) return call(std::forward<Args>(args)...);
    return call_hooked(std::forward<Args>(args)...);
  }

  ModuleType* operator->() const { return &module(); }
  ModuleType& module() const {
    if constexpr (ModuleHolder<M>) {
      return const_cast<ModuleType&>(*kept_.ptr());
    } else {
      return *kept_;
    }
  }
  Kept unwrap() const { return kept_; }

 private:
  template <typename... Args>
  decltype(auto) call(Args&&... args) {
    const auto forward = [&]() -> decltype(auto) {
      const auto mixed = autocast();
      return (*this)->forward(std::forward<Args>(args)...);
    };
    using Result = std::invoke_result_t<decltype(forward)>;
    using Value = std::remove_cvref_t<Result>;
    if constexpr (std::constructible_from<Value, Result> && std::move_constructible<Value>) {
      Value result = forward();
      if (is_mixed()) detail::each_tensor(result, [this](at::Tensor& tensor) { to_output_type(tensor); });
      if (has_hooks()) run_hooks_on(result);
      return result;
    } else if constexpr (std::is_void_v<Result>) {
      forward();
      std::vector<at::Tensor> none;
      after_forward(none);
    } else {
      return forward();
    }
  }

  template <typename... Args>
  decltype(auto) call_hooked(Args&&... args) {
    detail::HookedArguments<Args...> hooked(std::forward<Args>(args)...);
    hooked.replace(changed_arguments(hooked.tensors()));
    return hooked.apply([&](auto&&... now) -> decltype(auto) { return call(std::forward<decltype(now)>(now)...); });
  }

  template <typename Value>
  void run_hooks_on(Value& result) const {
    std::vector<at::Tensor> tensors;
    detail::each_tensor(result, [&](at::Tensor& tensor) { tensors.push_back(tensor); });
    after_forward(tensors);
    auto next = tensors.begin();
    detail::each_tensor(result, [&](at::Tensor& tensor) { tensor = *next++; });
  }

  Kept kept_;
};

}  // namespace hortator
