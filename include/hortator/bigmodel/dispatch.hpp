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
#include <hortator/quantise.hpp>
#include <hortator/state.hpp>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

// Models whose parts are on CUDA devices, in the CPU's memory and on disk.

namespace hortator {

/// A rule, or a device map. "auto" and "balanced": CUDA devices hold about equal parts; "balanced_low_0": little on the
/// first device; "sequential": placements are filled one after the other.
using DeviceMapChoice = std::variant<std::string, DeviceMap>;

/// Options of dispatch_model().
struct DispatchOptions {
  /// A folder with space for the parts on disk. They are written to an unnamed file there. Parts without values are
  /// read from the folder itself, if load_checkpoint_in_model() has written them to it.
  std::filesystem::path offload_folder = {};
  bool offload_buffers = false;  ///< also offloads buffers of modules on disk; else they stay in memory
};

/// Options of load_checkpoint_and_dispatch().
struct LoadAndDispatchOptions {
  DeviceMapChoice device_map = "auto";
  /// By default get_max_memory(). The limits include memory of parts on disk while they are in use. With an explicit
  /// device map only the CPU's limit counts, for that memory.
  MaxMemory max_memory = {};
  std::vector<std::string> no_split_module_classes = {};  ///< see BalanceOptions
  /// For parts that change after loading. Without it, changing a part on disk is an error. Inference does not need it.
  std::filesystem::path offload_folder = {};
  bool offload_buffers = false;               ///< see DispatchOptions
  std::optional<c10::ScalarType> dtype = {};  ///< this and the following: see LoadWeightsOptions
  std::vector<std::string> keep_in_fp32_modules = {};
  Renaming rename = {};
  bool strict = true;
  std::size_t model = 0;
  /// Packs weights of linear layers while they are read, as quantise() does: with the memory of one weight at a time.
  /// Those on disk are written to `offload_folder` once, and read from there in 8 or 4 bits. A checkpoint that is
  /// packed already needs neither: its layers are packed, and read from it.
  std::optional<QuantiseOptions> quantise = {};
};

/// Where a dispatched model's bytes are, and what it has read so far.
struct DispatchCounters {
  std::uint64_t in_memory = 0;        ///< bytes of parts that stay in memory, on devices or the host
  std::uint64_t on_disk = 0;          ///< bytes of parts that are read when they are used
  std::uint64_t peak_page_bytes = 0;  ///< the most memory that parts on disk have used at a time
  std::uint64_t pages_read = 0;
};

namespace detail {

/// The state behind a DispatchedModel.
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
  /// Call before the model is used. Starts to read the first parts on disk. While the result lives, operators of this
  /// thread get their tensors on one device. Null if all parts are on the host.
  std::shared_ptr<void> begin_use() const;

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

/// A model with parts in several placements. Call it as any model: parts on disk are read when an operator needs them,
/// and the next parts are read ahead. If parts are on CUDA devices, an operator gets its tensors on the device of its
/// parameters, parts on the host and on disk are copied to the device of the other operands, and results are copied to
/// the device of the first input tensor. This holds for calls of the model itself, not for methods called by ->.
template <Module M>
class DispatchedModel {
 public:
  DispatchedModel(M model, detail::Dispatch dispatch) : model_(std::move(model)), dispatch_(std::move(dispatch)) {}

  template <typename... Args>
  auto operator()(Args&&... args) {
    const auto together = dispatch_.begin_use();
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
  /// For methods called by ->: while the result lives, operators of this thread behave as in a call of the model,
  /// except that results stay on their devices.
  [[nodiscard]] std::shared_ptr<void> together() const { return dispatch_.begin_use(); }
  /// Reads all parts on disk into memory, permanently.
  void remove() { dispatch_.remove(); }

 private:
  M model_;
  detail::Dispatch dispatch_;  ///< destroyed first
};

/// Moves the parts of a model in memory, given by its holder or shared_ptr, to their placements. When the result is
/// destroyed, parts on disk are read into memory again if they fit (as with Offload).
///
///     auto model = hortator::dispatch_model(net, map, {.offload_folder = "/scratch"});
template <Module M>
requires(!ModuleObject<M>) [[nodiscard]] auto dispatch_model(const M& model, const DeviceMap& device_map,
                                                             const DispatchOptions& options = {}) {
  auto kept = model;
  auto dispatch = detail::dispatch(detail::module_of(kept), device_map, options);
  return DispatchedModel<M>(std::move(kept), std::move(dispatch));
}

/// Loads a checkpoint (see load_checkpoint_in_model) into a model, given by its holder or shared_ptr, that
/// init_empty_weights() or any other constructor made. Only what fits is in memory: parts on disk stay in the
/// checkpoint, and are read when they are used. Nothing is read twice or copied on the way. Each rank loads its own
/// model.
///
///     auto net = hortator::init_empty_weights([] { return Net(options); });
///     auto model = hortator::load_checkpoint_and_dispatch(state, net, "llama/");
///
/// The checkpoint must not change: a changed or truncated file is an error when it is read. When the result is
/// destroyed, parts on disk have no values, and using one is an error; call remove() before to keep them in memory.
/// With strict = false, tensors that are not in the checkpoint keep their values, in memory.
template <Module M>
requires(!ModuleObject<M>) [[nodiscard]] auto load_checkpoint_and_dispatch(const State& state, const M& model,
                                                                           const std::filesystem::path& checkpoint,
                                                                           const LoadAndDispatchOptions& options = {}) {
  auto kept = model;
  auto dispatch = detail::load_and_dispatch(state, detail::module_of(kept), checkpoint, options);
  return DispatchedModel<M>(std::move(kept), std::move(dispatch));
}

}  // namespace hortator
