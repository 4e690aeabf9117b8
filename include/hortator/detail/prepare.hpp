#pragma once

#include <torch/optim/schedulers/lr_scheduler.h>
#include <torch/optim/schedulers/reduce_on_plateau_scheduler.h>

// Implements Accelerator::prepare(): dispatches on the type of each argument. Included by accelerator.hpp.

namespace hortator {

namespace detail {

template <typename T>
void add_module(const T& object, std::vector<const torch::nn::Module*>& modules) {
  if constexpr (ModuleObject<T>) {
    modules.push_back(&object);
  } else if constexpr (Module<T>) {
    modules.push_back(&*object);
  }
}

template <typename T>
void add_optimizer(T& object, std::vector<torch::optim::Optimizer*>& optimizers) {
  if constexpr (std::derived_from<T, torch::optim::Optimizer>) optimizers.push_back(&object);
}

template <typename T>
inline constexpr bool is_prepared_model = false;
template <Module M>
inline constexpr bool is_prepared_model<Model<M>> = true;

template <typename>
inline constexpr bool never = false;

/// What prepare() returns after a failed static_assert, so that the compiler prints nothing else.
struct Refused {};

template <typename T>
inline constexpr bool is_torch_schedule = std::derived_from<T, torch::optim::LRScheduler>;
template <typename T>
inline constexpr bool is_torch_plateau = std::derived_from<T, torch::optim::ReduceLROnPlateauScheduler>;

}  // namespace detail

template <typename M>
requires Module<std::remove_cvref_t<M>>
auto Accelerator::prepare_model(M&& module, const PrepareModelOptions& chosen) {
  using Object = std::remove_cvref_t<M>;
  std::vector<const torch::nn::Module*> modules;
  detail::add_module(module, modules);
  estimate_if_asked(modules);
  if constexpr (ModuleObject<Object>) {
    static_assert(std::is_lvalue_reference_v<M>,
                  "prepare() borrows a module: keep it in a variable that outlives the training");
    return Model<Object>(&module, make_model(module, chosen));
  } else {
    return Model<Object>(module, make_model(detail::module_of(module), chosen));
  }
}

template <std::derived_from<LoaderBase> Loader>
Loader Accelerator::prepare_data_loader(Loader loader, const PrepareDataLoaderOptions& chosen) {
  attach(static_cast<LoaderBase&>(loader), chosen);
  return loader;
}

namespace detail {

/// Whether T has the save() of torch::optim::Optimizer itself, which saves nothing.
template <typename T>
concept InheritsSave = std::same_as<decltype(&T::save), decltype(&torch::optim::Optimizer::save)>;

}  // namespace detail

template <typename T>
auto Accelerator::prepare_one(T&& object, const TorchOptimizers& beside) {
  using Object = std::remove_cvref_t<T>;
  if constexpr (detail::is_prepared_model<Object> || std::same_as<Object, Optimizer>) {
    return object;
  } else if constexpr (Module<Object>) {
    return prepare_model(std::forward<T>(object));
  } else if constexpr (std::derived_from<Object, torch::optim::Optimizer>) {
    static_assert(std::is_lvalue_reference_v<T>,
                  "prepare() borrows an optimizer: keep it in a variable that outlives the training");
    return Optimizer(make_optimizer(object, detail::InheritsSave<Object>));
  } else if constexpr (std::derived_from<Object, LoaderBase>) {
    return prepare_data_loader<Object>(object);
  } else if constexpr (std::derived_from<Object, ScheduleBase>) {
    Object schedule = object;
    attach(static_cast<const ScheduleBase&>(schedule));
    return schedule;
  } else if constexpr (detail::is_torch_schedule<Object>) {
    static_assert(std::is_lvalue_reference_v<T>,
                  "prepare() borrows a scheduler: keep it in a variable that outlives the training");
    return attach(static_cast<torch::optim::LRScheduler&>(object), beside);
  } else if constexpr (detail::is_torch_plateau<Object>) {
    static_assert(detail::never<T>,
                  "prepare() cannot take torch::optim's ReduceLROnPlateauScheduler, which hides its state: use "
                  "hortator::ReduceOnPlateau, which has the same options");
    return detail::Refused{};
  } else if constexpr (detail::is_torch_loader<Object>) {
    static_assert(detail::never<T>,
                  "prepare() cannot take torch::data's loaders, which hide their data set and sampler, so that their "
                  "samples cannot be distributed to ranks: use hortator::data_loader(dataset, {.batch_size = ...})");
    return detail::Refused{};
  } else if constexpr (detail::is_numbered<Object> || detail::StreamDataset<Object>) {
    static_assert(detail::never<T>,
                  "prepare() takes loaders, not data sets: use hortator::data_loader(dataset, {.batch_size = ...})");
    return detail::Refused{};
  } else {
    static_assert(detail::never<T>,
                  "prepare() takes torch::nn modules (by holder, shared_ptr or variable), torch::optim optimizers, "
                  "loaders made by hortator::data_loader and schedules made by hortator");
    return detail::Refused{};
  }
}

template <typename... Objects>
auto Accelerator::prepare(Objects&&... objects) {
  static_assert(sizeof...(Objects) > 0, "prepare() needs something to prepare");
  std::vector<const torch::nn::Module*> modules;
  (detail::add_module(objects, modules), ...);
  estimate_if_asked(modules);
  TorchOptimizers optimizers;
  (detail::add_optimizer(objects, optimizers), ...);
  // Braces: evaluated from left to right, in the same order on all ranks.
  std::tuple<decltype(prepare_one(std::forward<Objects>(objects), optimizers))...> handles{
      prepare_one(std::forward<Objects>(objects), optimizers)...};
  announce_once();
  if constexpr (sizeof...(Objects) == 1) {
    return std::get<0>(std::move(handles));
  } else {
    return handles;
  }
}

template <typename Batches>
auto Accelerator::progress(Batches&& batches, std::string_view title) {
  return ProgressRange<Batches>(std::forward<Batches>(batches), progress_sink(), title);
}

}  // namespace hortator
