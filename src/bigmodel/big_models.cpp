#include <hortator/bigmodel/big_models.hpp>
#include <hortator/error.hpp>
#include <ostream>

#include "bigmodel/device_map.hpp"
#include "bigmodel/max_memory.hpp"
#include "bigmodel/module_tree.hpp"
#include "core/text/text.hpp"
#include "core/text/units.hpp"
#include "paging/deferred/construction_scope.hpp"

namespace hortator {
namespace {

constexpr const char* empty =
    "The tensor has no values yet (it was made by init_empty_weights). Load a checkpoint into the model first";

}  // namespace

Bytes parse_size(std::string_view text) { return static_cast<Bytes>(units::parse_bytes(text)); }

std::map<std::string, Bytes> compute_module_sizes(const torch::nn::Module& module, const SizeOptions& options) {
  const bigmodel::ModuleSizes sizes(bigmodel::tree_of(module), options);
  return {sizes.all().begin(), sizes.all().end()};
}

MaxMemory get_balanced_memory(const torch::nn::Module& module, const BalanceOptions& options) {
  return bigmodel::balanced_memory(bigmodel::tree_of(module), options);
}

DeviceMap infer_auto_device_map(const torch::nn::Module& module, const DeviceMapOptions& options) {
  return bigmodel::infer_device_map(bigmodel::tree_of(module), options);
}

void check_device_map(const torch::nn::Module& module, const DeviceMap& map) {
  const auto faults = bigmodel::faults_of(map, bigmodel::tree_of(module));
  if (!faults.unknown.empty()) {
    throw UsageError(
        {.what = text::concat("The device map has names that the model does not have: ", text::join(faults.unknown)),
         .hint = "use names from named_modules() and named_parameters()"});
  }
  if (!faults.unplaced.empty()) {
    throw UsageError({.what = text::concat("The device map has no entry for ", text::join(faults.unplaced)),
                      .why = "every tensor of the model needs a placement",
                      .hint = "add an entry \"\" for everything that has no other"});
  }
}

DevicePlacement DevicePlacement::cuda(int index) {
  if (index >= 0) return {Medium::cuda, index};
  throw UsageError({.what = text::concat("Invalid CUDA device ", index), .hint = "devices are numbered from 0"});
}

DevicePlacement DevicePlacement::parse(std::string_view name) {
  constexpr std::string_view prefix = "cuda:";
  if (name == "cpu") return cpu();
  if (name == "disk") return disk();
  const auto number = name.starts_with(prefix) ? name.substr(prefix.size()) : name;
  constexpr long long max_devices = 1 << 16;
  long long index = -1;
  if (text::parse_integer(number, index) && 0 <= index && index < max_devices) return cuda(static_cast<int>(index));
  throw UsageError({.what = text::concat("Invalid device placement ", text::quote(name)),
                    .why =
                        "parts of a model lie on CUDA devices, in the CPU's memory or on disk; other kinds of devices "
                        "(tpu, mps, xpu, ...) are not supported on purpose",
                    .hint = "use the number of a CUDA device, cpu or disk"});
}

std::ostream& operator<<(std::ostream& out, const DevicePlacement& placement) {
  if (placement.is_cuda()) return out << "cuda:" << placement.index_;
  return out << (placement.is_cpu() ? "cpu" : "disk");
}

namespace detail {

struct EmptyConstruction::Scope {
  paging::ConstructionScope construction{paging::Recording::Order::any};
};

EmptyConstruction::EmptyConstruction() : scope_(std::make_unique<Scope>()) {}
EmptyConstruction::~EmptyConstruction() = default;

// Buffers first: a buffer that shares a parameter's memory must lose it with the parameter, so that reads throw.
void EmptyConstruction::finish(torch::nn::Module& module, const EmptyOptions& options) {
  for (const auto& buffer : module.buffers())
    options.include_buffers ? paging::drop_values(buffer, empty) : paging::settle(buffer);
  for (const auto& parameter : module.parameters()) paging::drop_values(parameter, empty);
}

}  // namespace detail

bool is_empty_weight(const at::Tensor& tensor) { return tensor.defined() && paging::lacks_memory(tensor); }

}  // namespace hortator
