#include "accelerator/dispatch/packed_parts.hpp"

#include <algorithm>
#include <hortator/error.hpp>
#include <map>

#include "core/text/text.hpp"
#include "interception/weight_operators.hpp"
#include "paging/deferred/construction_scope.hpp"

namespace hortator::accelerator {

std::shared_ptr<packed::PackingSource> packing_source(const Loading& loading, const torch::nn::Module& module,
                                                      const QuantiseOptions& options) {
  std::map<std::string, packed::PackableLayer> filled;
  for (auto& layer : packed::packable_layers(module, options)) {
    const auto is_it = [&](const weights::Filling& one) { return one.tensor.is_same(layer.weight); };
    const auto filling = std::ranges::find_if(loading.fillings(), is_it);
    layer.type = loading.type_for(layer.weight_name(), layer.weight);
    if (filling != loading.fillings().end()) {
      packed::become_packed(layer);
      filled.emplace(filling->stored, layer);
    } else if (!paging::lacks_memory(layer.weight) || paging::is_deferred(layer.weight)) {
      packed::pack_in_place(layer);
    }
  }
  return std::make_shared<packed::PackingSource>(loading.shared_source(), std::move(filled));
}

void require_packed_on_host(const std::vector<PlacedTensor>& tensors) {
  const auto found = std::ranges::find_if(
      tensors, [](const auto& one) { return one.place.is_cuda() && interception::is_packed(one.tensor); });
  if (found == tensors.end()) return;
  throw UsageError(
      {.what = text::concat("The packed weight ", text::quote(found->name), " was to be on ", found->place),
       .why = "packed weights are computed on CPUs",
       .hint = "place the model on cpu and disk by .device_map or .max_memory, or leave out .quantise"});
}

void keep_packed_on_disk(packed::PackingSource& source, const Division& division, const std::filesystem::path& folder) {
  std::vector<std::string> names;
  for (const auto& one : division.later)
    if (interception::is_packed(one.tensor)) names.push_back(one.stored);
  if (names.empty()) return;
  if (folder.empty()) {
    throw UsageError({.what = text::concat("load_checkpoint_and_dispatch() was to pack ", text::quote(names.front()),
                                           ", which stays on disk, and .offload_folder is not set"),
                      .why = "packed weights are written to a file once, and read from there",
                      .hint = "name a folder with room for them, or load a checkpoint that is packed already"});
  }
  source.keep_on_disk(names, folder);
}

}  // namespace hortator::accelerator
