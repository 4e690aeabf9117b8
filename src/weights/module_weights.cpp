#include "weights/module_weights.hpp"

#include <map>
#include <tuple>

namespace hortator::weights {
namespace {

/// Equal for tied tensors. Without the address: a parameter that is paged out has none.
using TensorIdentity = std::tuple<const c10::StorageImpl*, std::int64_t, at::ScalarType, std::vector<std::int64_t>,
                                  std::vector<std::int64_t>>;

TensorIdentity identity_of(const at::Tensor& tensor) {
  return {tensor.storage().unsafeGetStorageImpl(), tensor.storage_offset(), tensor.scalar_type(), tensor.sizes().vec(),
          tensor.strides().vec()};
}

using Named = torch::OrderedDict<std::string, at::Tensor>;

void add(std::vector<ModuleWeight>& weights, const std::string& prefix, const Named& tensors) {
  for (const auto& item : tensors) {
    if (item.value().defined()) weights.push_back({.name = prefix + item.key(), .tensor = item.value()});
  }
}

void walk(std::vector<ModuleWeight>& weights, const std::string& prefix, const torch::nn::Module& module) {
  add(weights, prefix, module.named_parameters(false));
  add(weights, prefix, module.named_buffers(false));
  for (const auto& child : module.named_children()) walk(weights, prefix + child.key() + ".", *child.value());
}

}  // namespace

std::vector<ModuleWeight> weights_of(const torch::nn::Module& module) {
  std::vector<ModuleWeight> weights;
  walk(weights, "", module);
  std::map<TensorIdentity, std::size_t> firsts;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    weights[i].first =
        weights[i].tensor.has_storage() ? firsts.emplace(identity_of(weights[i].tensor), i).first->second : i;
  }
  return weights;
}

}  // namespace hortator::weights
