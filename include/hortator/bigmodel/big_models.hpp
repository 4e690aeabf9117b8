#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <compare>
#include <concepts>
#include <functional>
#include <hortator/export.hpp>
#include <hortator/model.hpp>
#include <hortator/state.hpp>
#include <iosfwd>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

// Models larger than a device or than memory: their sizes, the memory available, and the placement of their parts.

namespace hortator {

/// A size in bytes. A bool counts as an eighth, as in Hugging Face Accelerate. Exact up to 2^50.
using Bytes = double;

/// A size as a text gives it: "16GiB", "1.5 KiB", "4096" or "2GB", with units in any case; Accelerate's
/// convert_file_size_to_int(). Throws UsageError for any other text, and for "2Gb", which may mean bits.
HORTATOR_API Bytes parse_size(std::string_view text);

/// Where a part of a model is: on a CUDA device, in the CPU's memory, or on disk. Placements are ordered as they are
/// filled: CUDA devices by number, then the CPU, then the disk.
class HORTATOR_API DevicePlacement {
 public:
  static DevicePlacement cuda(int index);
  static DevicePlacement cpu() { return DevicePlacement(Medium::cpu, 0); }
  static DevicePlacement disk() { return DevicePlacement(Medium::disk, 0); }
  /// Accepts "0", "cuda:0", "cpu" and "disk". Throws UsageError for anything else.
  static DevicePlacement parse(std::string_view name);

  bool is_cuda() const { return medium_ == Medium::cuda; }
  bool is_cpu() const { return medium_ == Medium::cpu; }
  bool is_disk() const { return medium_ == Medium::disk; }
  int index() const { return index_; }  ///< of a CUDA device

  friend auto operator<=>(const DevicePlacement&, const DevicePlacement&) = default;
  friend HORTATOR_API std::ostream& operator<<(std::ostream& out, const DevicePlacement& placement);

 private:
  enum class Medium { cuda, cpu, disk };
  DevicePlacement(Medium medium, int index) : medium_(medium), index_(index) {}

  Medium medium_;
  int index_;
};

/// The maximum size of the parts in each placement.
using MaxMemory = std::map<DevicePlacement, Bytes>;
/// Placements of modules and parameters by name. "" is the whole model; a module's entry holds for everything below it.
using DeviceMap = std::map<std::string, DevicePlacement>;

/// The types in which tensors are counted.
struct SizeOptions {
  /// Larger floating-point tensors count as this type. By default all count as they are.
  std::optional<at::ScalarType> dtype = {};
  std::map<std::string, at::ScalarType> special_dtypes = {};  ///< by tensor name; these count as exactly that type
};

/// Options of get_balanced_memory().
struct BalanceOptions {
  MaxMemory max_memory = {};  ///< the available memory: get_max_memory()
  /// Classes of modules that are never split. "Block" also matches BlockImpl.
  std::vector<std::string> no_split_module_classes = {};
  SizeOptions sizes = {};
  bool low_zero = false;  ///< puts as little as possible on the first CUDA device, which does other work
};

/// Options of infer_auto_device_map().
struct DeviceMapOptions {
  MaxMemory max_memory = {};                              ///< get_max_memory(), or get_balanced_memory()
  std::vector<std::string> no_split_module_classes = {};  ///< see BalanceOptions
  SizeOptions sizes = {};
  bool clean_result = true;  ///< merges entries of a module whose parts have one placement
  /// If the next module does not fit into an empty placement, the first later part that fits goes there instead.
  bool fallback_allocation = false;
};

/// The bytes of each tensor, and of each module with tensors below it; "" is the whole model. Tied parameters count
/// once, under their first name.
HORTATOR_API std::map<std::string, Bytes> compute_module_sizes(const torch::nn::Module& module,
                                                               const SizeOptions& options = {});

/// The memory that this rank can use: the free memory of its CUDA devices, and its share of the node's free memory. The
/// only rank of a node can use all devices, any other its own. Does not communicate.
HORTATOR_API MaxMemory get_max_memory(const State& state);

/// Lowers the limits in `max_memory` so that CUDA devices hold about equal parts.
HORTATOR_API MaxMemory get_balanced_memory(const torch::nn::Module& module, const BalanceOptions& options);

/// Chooses a placement for each part of the model. Placements are filled in their order with modules in their order,
/// and what fits nowhere goes to disk. The first CUDA device and the CPU reserve space for the largest layer still to
/// be placed. Modules that do not fit are split; tied parameters stay together. Buffers of split modules are placed
/// too.
HORTATOR_API DeviceMap infer_auto_device_map(const torch::nn::Module& module, const DeviceMapOptions& options);

/// Throws UsageError if a tensor has no placement in `map`, or if `map` has a name that the model does not have.
HORTATOR_API void check_device_map(const torch::nn::Module& module, const DeviceMap& map);

/// Options of init_empty_weights().
struct EmptyOptions {
  bool include_buffers = false;  ///< buffers get no memory either
};

namespace detail {

/// While it lives, tensors that this thread creates on the CPU are deferred as by DeferredConstruction, without its
/// order of random numbers.
class HORTATOR_API EmptyConstruction {
 public:
  EmptyConstruction();
  ~EmptyConstruction();
  EmptyConstruction(const EmptyConstruction&) = delete;
  EmptyConstruction& operator=(const EmptyConstruction&) = delete;

  /// Drops the values of the module's parameters, and gives buffers their values.
  void finish(torch::nn::Module& module, const EmptyOptions& options);

 private:
  struct Scope;
  std::unique_ptr<Scope> scope_;
};

}  // namespace detail

/// Whether it is a tensor without memory, as init_empty_weights() creates.
HORTATOR_API bool is_empty_weight(const at::Tensor& tensor);

/// Constructs a module whose parameters use no memory and are never initialised, whatever their size:
///
///     auto net = hortator::init_empty_weights([] { return Net(options); });
///
/// Use it to plan a device map, or to load a checkpoint into it. Buffers have their values. Reading a parameter before
/// it is loaded is an error. A constructor that reads its parameters gets their values, and uses their memory while it
/// runs.
template <std::invocable Make>
auto init_empty_weights(Make&& make, const EmptyOptions& options = {}) {
  detail::EmptyConstruction construction;
  auto model = std::forward<Make>(make)();
  static_assert(ModuleHolder<decltype(model)> || ModulePointer<decltype(model)>,
                "init_empty_weights() takes a function that returns a module by its holder or by shared_ptr");
  construction.finish(detail::module_of(model), options);
  return model;
}

}  // namespace hortator
