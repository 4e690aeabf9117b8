#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <hortator/bigmodel/big_models.hpp>
#include <hortator/bigmodel/weights.hpp>
#include <hortator/detail/each_tensor.hpp>
#include <hortator/export.hpp>
#include <hortator/model.hpp>
#include <hortator/state.hpp>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

// Models whose parts lie in several places: CUDA devices, the CPU's memory, the disk.

namespace hortator {

/// A rule, or what goes where. "auto" and "balanced": CUDA devices hold about equal parts; "balanced_low_0": little on
/// the first of them; "sequential": the first places are filled first.
using DeviceMapChoice = std::variant<std::string, DeviceMap>;

/// Of dispatch_model.
struct DispatchOptions {
  /// A folder with room for the parts that go to disk, which are written to a file without a name there.
  std::filesystem::path offload_folder = {};
  bool offload_buffers = false;  ///< buffers of modules on disk go there, too; else they stay in memory
};

/// Of load_checkpoint_and_dispatch.
struct LoadAndDispatchOptions {
  DeviceMapChoice device_map = "auto";
  /// By default what there is: get_max_memory(). It holds for parts on disk as well, while they are used. Where the
  /// places are given, only the CPU's counts, and only for that.
  MaxMemory max_memory = {};
  std::vector<std::string> no_split_module_classes = {};  ///< see BalanceOptions
  /// For parts that change after they were loaded. Without it changing one that lies on disk is an error: answers need
  /// no such place.
  std::filesystem::path offload_folder = {};
  bool offload_buffers = false;               ///< see DispatchOptions
  std::optional<c10::ScalarType> dtype = {};  ///< see LoadWeightsOptions, as what follows
  std::vector<std::string> keep_in_fp32_modules = {};
  Renaming rename = {};
  bool strict = true;
  std::size_t model = 0;
};

/// What a dispatched model has where, and has read so far.
struct DispatchCounters {
  std::uint64_t in_memory = 0;        ///< bytes of the parts that stay there, on devices or the host
  std::uint64_t on_disk = 0;          ///< bytes of the parts that come when they are used
  std::uint64_t peak_page_bytes = 0;  ///< memory that those have taken at a time
  std::uint64_t pages_read = 0;
};

namespace detail {

/// What keeps a dispatched model going.
class HORTATOR_API Dispatch {
 public:
  class State;
  explicit Dispatch(std::unique_ptr<State> state);
  ~Dispatch();
  Dispatch(Dispatch&& other) noexcept;
  Dispatch& operator=(Dispatch&& other) noexcept;

  const DeviceMap& device_map() const;
  DispatchCounters counters() const;
  void remove();
  /// The model is used now: what it needs first of the disk is on its way. Where parts lie on devices: as long as the
  /// result lives, this thread's operators get their tensors together. Null where all is on the host.
  std::shared_ptr<void> meet() const;

 private:
  std::unique_ptr<State> state_;
};

HORTATOR_API Dispatch dispatch(torch::nn::Module& module, const DeviceMap& map, const DispatchOptions& options);
HORTATOR_API Dispatch load_and_dispatch(const hortator::State& state, torch::nn::Module& module,
                                        const std::filesystem::path& checkpoint, const LoadAndDispatchOptions& options);

template <typename Arg>
void find_device(const Arg& argument, std::optional<c10::Device>& found) {
  if constexpr (std::is_same_v<Arg, at::Tensor>) {
    if (!found && argument.defined()) found = argument.device();
  }
}

}  // namespace detail

/// A model whose parts lie in several places. It is called as ever: what lies on disk is read when an operator needs
/// it, and what comes next is read ahead. Where parts lie on CUDA devices, an operator gets its tensors on the device
/// of its parameters, parts on the host and on disk are copied to the device of what they work on, and tensors that
/// come out are brought to the device of the first tensor that went in; that is so in calls of the model itself, not of
/// methods that are reached by ->.
template <Module M>
class DispatchedModel {
 public:
  DispatchedModel(M model, detail::Dispatch dispatch) : model_(std::move(model)), dispatch_(std::move(dispatch)) {}

  template <typename... Args>
  auto operator()(Args&&... args) {
    const auto together = dispatch_.meet();
    using Result = decltype(model_->forward(std::forward<Args>(args)...));
    if constexpr (std::is_void_v<Result>) {
      model_->forward(std::forward<Args>(args)...);
    } else {
      std::optional<c10::Device> from;
      (detail::find_device(args, from), ...);
      auto result = model_->forward(std::forward<Args>(args)...);
      if (together && from) {
        detail::each_tensor(result, [&](at::Tensor& tensor) {
          if (tensor.defined()) tensor = tensor.to(*from);
        });
      }
      return result;
    }
  }
  auto* operator->() { return &*model_; }
  const M& unwrap() const { return model_; }

  const DeviceMap& device_map() const { return dispatch_.device_map(); }
  DispatchCounters counters() const { return dispatch_.counters(); }
  /// For methods that are reached by ->: as long as the result lives, what is said of calls holds for this thread, but
  /// for the tensors that come out.
  [[nodiscard]] std::shared_ptr<void> together() const { return dispatch_.meet(); }
  /// Puts what lies on disk into memory, for good.
  void remove() { dispatch_.remove(); }

 private:
  M model_;
  detail::Dispatch dispatch_;  ///< dies first
};

/// Puts the parts of a model that is in memory, by its holder or shared_ptr, to their places. At the end of what comes
/// back, parts on disk are put into memory again if there is room for them (as Offload's).
///
///     auto model = hortator::dispatch_model(net, map, {.offload_folder = "/scratch"});
template <Module M>
requires(!ModuleObject<M>) [[nodiscard]] auto dispatch_model(const M& model, const DeviceMap& device_map,
                                                             const DispatchOptions& options = {}) {
  auto kept = model;
  auto dispatch = detail::dispatch(detail::module_of(kept), device_map, options);
  return DispatchedModel<M>(std::move(kept), std::move(dispatch));
}

/// Fills a model, by its holder or shared_ptr, that init_empty_weights() or any other constructor made, with weights
/// (see load_checkpoint_in_model), of which no more than fits is in memory: what goes to disk stays where it is, in the
/// checkpoint, and is read when it is used. Nothing is read twice on the way, and nothing copied. Each rank does this
/// for itself.
///
///     auto net = hortator::init_empty_weights([] { return Net(options); });
///     auto model = hortator::load_checkpoint_and_dispatch(state, net, "llama/");
///
/// The checkpoint must stay as it is: one that is changed or cut short is an error when it is read. At the end of what
/// comes back, parts on disk are without values, and to use one is an error that says so; remove() before that has them
/// in memory. With strict = false, tensors that the checkpoint does not have keep their values, in memory.
template <Module M>
requires(!ModuleObject<M>) [[nodiscard]] auto load_checkpoint_and_dispatch(const State& state, const M& model,
                                                                           const std::filesystem::path& checkpoint,
                                                                           const LoadAndDispatchOptions& options = {}) {
  auto kept = model;
  auto dispatch = detail::load_and_dispatch(state, detail::module_of(kept), checkpoint, options);
  return DispatchedModel<M>(std::move(kept), std::move(dispatch));
}

}  // namespace hortator
