#include <hortator/bigmodel/big_models.hpp>
#include <hortator/error.hpp>

#include "bigmodel/balanced_memory.hpp"
#include "bigmodel/device_map.hpp"
#include "bigmodel/module_sizes.hpp"
#include "core/text/text.hpp"

namespace hortator {

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

}  // namespace hortator
