#include "paging/named_tensors.hpp"

#include <torch/csrc/jit/api/module.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <hortator/error.hpp>
#include <utility>

#include "core/text/text.hpp"

namespace hortator::paging {
namespace {

bool belongs_to(const std::string& name, const std::string& whole) {
  return name == whole || (name.starts_with(whole) && name[whole.size()] == '.');
}

void require_known(const std::string& wanted, const std::vector<NamedTensor>& tensors) {
  const bool is_known = std::any_of(tensors.begin(), tensors.end(),
                                    [&](const NamedTensor& tensor) { return belongs_to(tensor.name, wanted); });
  if (is_known) return;
  std::vector<std::string> names;
  for (const auto& tensor : tensors) names.push_back(tensor.name);
  throw UsageError({.what = text::concat("keep_resident: the module has no parameter or module ", text::quote(wanted)),
                    .hint = text::suggestion(wanted, names)});
}

// A tensor with several names stays if one of them is listed.
std::vector<NamedTensor> without(std::vector<NamedTensor> tensors, const std::vector<std::string>& keep) {
  for (const auto& wanted : keep) require_known(wanted, tensors);
  std::vector<const c10::StorageImpl*> kept;
  for (const auto& [name, tensor] : tensors) {
    const bool stays = std::any_of(keep.begin(), keep.end(), [&n = name](const auto& k) { return belongs_to(n, k); });
    if (stays && tensor.defined() && tensor.has_storage()) kept.push_back(tensor.storage().unsafeGetStorageImpl());
  }
  std::erase_if(tensors, [&](const NamedTensor& named) {
    if (!named.tensor.defined() || !named.tensor.has_storage()) return false;
    return std::find(kept.begin(), kept.end(), named.tensor.storage().unsafeGetStorageImpl()) != kept.end();
  });
  return tensors;
}

}  // namespace

std::vector<NamedTensor> named_tensors(const torch::nn::Module& module, const TensorSelection& selection) {
  std::vector<NamedTensor> tensors;
  for (const auto& item : module.named_parameters()) tensors.push_back({.name = item.key(), .tensor = item.value()});
  if (selection.buffers) {
    for (const auto& item : module.named_buffers()) tensors.push_back({.name = item.key(), .tensor = item.value()});
  }
  return without(std::move(tensors), selection.keep_resident);
}

std::vector<NamedTensor> named_tensors(const torch::jit::Module& module, const TensorSelection& selection) {
  std::vector<NamedTensor> tensors;
  for (const auto& item : module.named_parameters()) tensors.push_back({.name = item.name, .tensor = item.value});
  if (selection.buffers) {
    for (const auto& item : module.named_buffers()) tensors.push_back({.name = item.name, .tensor = item.value});
  }
  return without(std::move(tensors), selection.keep_resident);
}

}  // namespace hortator::paging
