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

// Models larger than a device, or than the memory: what they take, what there is, and which part goes where.

namespace hortator {

/// Of tensors, and of what may hold them. A bool counts an eighth of one, as in the reference; exact up to 2^50.
using Bytes = double;

/// Where a part of a model can lie. Places are ordered as they are filled: CUDA devices by number, the CPU's memory,
/// the disk.
class HORTATOR_API Place {
 public:
  static Place cuda(int index);
  static Place cpu() { return Place(Kind::cpu, 0); }
  static Place disk() { return Place(Kind::disk, 0); }
  /// "0", "cuda:0", "cpu", "disk". UsageError for anything else.
  static Place parse(std::string_view words);

  bool is_cuda() const { return kind_ == Kind::cuda; }
  bool is_cpu() const { return kind_ == Kind::cpu; }
  bool is_disk() const { return kind_ == Kind::disk; }
  int index() const { return index_; }  ///< of a CUDA device

  friend auto operator<=>(const Place&, const Place&) = default;
  friend HORTATOR_API std::ostream& operator<<(std::ostream& out, const Place& place);

 private:
  enum class Kind { cuda, cpu, disk };
  Place(Kind kind, int index) : kind_(kind), index_(index) {}

  Kind kind_;
  int index_;
};

/// How much of a model each place may hold.
using MaxMemory = std::map<Place, Bytes>;
/// Modules and parameters by name, with their places. "" is the whole model; a module's entry stands for all below it.
using DeviceMap = std::map<std::string, Place>;

/// In which type tensors are to be counted.
struct SizeOptions {
  /// Floating-point tensors that are larger count as of this type; by default all as they are.
  std::optional<at::ScalarType> dtype = {};
  std::map<std::string, at::ScalarType> special_dtypes = {};  ///< of tensors by name, which count in just that type
};

/// Of get_balanced_memory.
struct BalanceOptions {
  MaxMemory max_memory = {};  ///< what there is: get_max_memory()
  /// Classes of modules that stay in one place, as code calls them: "Block", for nn::Module's BlockImpl too.
  std::vector<std::string> no_split_module_classes = {};
  SizeOptions sizes = {};
  bool low_zero = false;  ///< as little as possible on the first CUDA device, which does other work
};

/// Of infer_auto_device_map.
struct DeviceMapOptions {
  MaxMemory max_memory = {};                              ///< what there is: get_max_memory(), or get_balanced_memory()
  std::vector<std::string> no_split_module_classes = {};  ///< see BalanceOptions
  SizeOptions sizes = {};
  bool clean_result = true;  ///< modules of which all parts have one place are one entry
  /// A place into which the next module does not go takes the first part of a later one that does, before it stays
  /// empty.
  bool fallback_allocation = false;
};

/// The bytes of each tensor, and of each module that has some below it; "" is the whole. Tied parameters count once,
/// under their first name.
HORTATOR_API std::map<std::string, Bytes> compute_module_sizes(const torch::nn::Module& module,
                                                               const SizeOptions& options = {});

/// What this rank can take: the free memory of its CUDA devices, and its part of what its node has left. A rank that is
/// alone on its node has all devices, any other its own. Nothing is sent.
HORTATOR_API MaxMemory get_max_memory(const State& state);

/// Of `max_memory`, what makes the parts on several CUDA devices about equal.
HORTATOR_API MaxMemory get_balanced_memory(const torch::nn::Module& module, const BalanceOptions& options);

/// Where each part of the model goes: places are filled in their order, modules come in theirs, and what fits nowhere
/// goes to disk. The first CUDA device and the CPU keep room for the largest layer that is still to come; modules that
/// do not fit are split; tied parameters stay together. Buffers of modules that are split have places, too.
HORTATOR_API DeviceMap infer_auto_device_map(const torch::nn::Module& module, const DeviceMapOptions& options);

/// Throws UsageError that names the tensors that have no place in `map`, and names in it that the model does not have.
HORTATOR_API void check_device_map(const torch::nn::Module& module, const DeviceMap& map);

/// Of init_empty_weights.
struct EmptyOptions {
  bool include_buffers = false;  ///< they get no memory, too
};

namespace detail {

/// As long as it lives, what this thread makes on the CPU is made as DeferredConstruction makes it, but for the order
/// of its random numbers.
class HORTATOR_API EmptyConstruction {
 public:
  EmptyConstruction();
  ~EmptyConstruction();
  EmptyConstruction(const EmptyConstruction&) = delete;
  EmptyConstruction& operator=(const EmptyConstruction&) = delete;

  /// Takes the memory of the module's parameters, and gives its buffers their values.
  void finish(torch::nn::Module& module, const EmptyOptions& options);

 private:
  struct Scope;
  std::unique_ptr<Scope> scope_;
};

}  // namespace detail

/// Is it a tensor without memory, as init_empty_weights() makes them?
HORTATOR_API bool is_empty_weight(const at::Tensor& tensor);

/// `auto net = hortator::init_empty_weights([] { return Net(options); });`: a module whose parameters take no memory
/// and are never initialised, whatever their size: to plan for it, or to load a checkpoint into it. Its buffers have
/// their values. Reading a parameter before it is loaded is an error. A module that reads its parameters' values while
/// it is made gets them, and takes their memory for as long.
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
