#include "accelerator/dispatch/offloaded_parts.hpp"

#include <algorithm>
#include <hortator/error.hpp>
#include <utility>

#include "core/text/text.hpp"
#include "paging/deferred/construction_scope.hpp"
#include "weights/offload_folder_weights.hpp"

namespace hortator::accelerator {
namespace {

bool has_no_values(const PlacedTensor& one) {
  return one.place.is_disk() && paging::lacks_memory(one.tensor) && !paging::is_deferred(one.tensor);
}

void require_shape(const PlacedTensor& one, const weights::WeightSource& source) {
  const auto stored = source.spec(one.name);
  if (stored.shape == one.tensor.sizes()) return;
  throw UsageError(
      {.what = text::concat(source.path(), " has ", text::quote(one.name), " as ", formats::to_string(stored),
                            ", the model has ", formats::to_string(formats::spec_of(one.tensor))),
       .why = "the folder was written for another model",
       .hint = "load the model's checkpoint again by load_checkpoint_in_model()"});
}

}  // namespace

OffloadedParts take_offloaded(std::vector<PlacedTensor>& tensors, const std::filesystem::path& folder) {
  OffloadedParts parts;
  const bool is_written = std::filesystem::exists(folder / weights::OffloadFolderWeights::index_file);
  if (!is_written || std::ranges::none_of(tensors, has_no_values)) return parts;
  parts.source = std::make_shared<weights::OffloadFolderWeights>(folder);
  const auto& names = parts.source->names();
  std::vector<PlacedTensor> others;
  for (auto& one : tensors) {
    if (!has_no_values(one) || std::ranges::find(names, one.name) == names.end()) {
      others.push_back(std::move(one));
      continue;
    }
    require_shape(one, *parts.source);
    parts.fillings.push_back({.stored = one.name, .tensor = one.tensor});
    parts.tensors.push_back(std::move(one));
  }
  tensors = std::move(others);
  return parts;
}

}  // namespace hortator::accelerator
