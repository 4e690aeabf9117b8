#include "weights/deepspeed/rank_arrays.hpp"

#include <set>
#include <utility>

#include "core/text/text.hpp"
#include "weights/deepspeed/zero_file.hpp"

namespace hortator::weights {
namespace {

using formats::PickledTensor;

std::set<std::string> names_of_moments(const formats::ZeroArrays& arrays) {
  std::set<std::string> names;
  for (const auto& moments : arrays.moments) {
    for (const auto& [name, array] : moments.arrays) names.insert(name);
  }
  return names;
}

std::vector<PickledTensor> moments_of(const ZeroFile& file, const formats::ZeroArrays& arrays,
                                      const std::string& name) {
  std::vector<PickledTensor> found;
  for (const auto& moments : arrays.moments) {
    const auto array = moments.arrays.find(name);
    if (array == moments.arrays.end()) break;
    found.push_back(array->second);
  }
  if (found.size() != arrays.masters.size())
    file.refuse(text::concat("it has no ", text::quote(name), " for some of its arrays"));
  return found;
}

std::vector<StoredArray> stored(const ZeroFile& file, const std::vector<PickledTensor>& arrays) {
  std::vector<StoredArray> found;
  for (const auto& array : arrays) {
    if (array.spec.type != arrays.front().spec.type) file.refuse("it has arrays of different types");
    found.push_back({.file = file.number(), .offset = file.offset_of(array), .spec = array.spec});
  }
  return found;
}

void read_numbers(const ZeroFile& file, formats::ZeroArrays& arrays) {
  for (auto& moments : arrays.moments) file.read_numbers(moments.values);
  for (auto& group : arrays.groups) {
    if (auto* options = std::get_if<formats::PickleValue::Dict>(&group.content)) file.read_numbers(*options);
  }
}

/// `first`: rank 0's arrays.
void require_fits(const ZeroFolder& folder, const ZeroFile& file, std::size_t rank, const formats::ZeroArrays& found,
                  const formats::ZeroArrays& first) {
  const auto ranks = static_cast<std::int64_t>(folder.optimizers.size());
  if (found.ranks != ranks) {
    refuse_folder(folder, text::concat(folder.optimizers[rank].filename().string(), " was written by ", found.ranks,
                                       " ranks, the folder has the files of ", ranks));
  }
  if (found.stage != first.stage || found.masters.size() != first.masters.size())
    file.refuse("it has another stage of ZeRO or other groups of parameters than rank 0's file");
}

}  // namespace

RankArrays read_rank_arrays(const ZeroFolder& folder, formats::FilePool& files) {
  RankArrays all;
  for (std::size_t rank = 0; rank < folder.optimizers.size(); ++rank) {
    const ZeroFile file(files, folder.optimizers[rank]);
    auto found = file.parsed(formats::parse_zero_arrays);
    if (rank == 0) all.optimizer = found;
    require_fits(folder, file, rank, found, all.optimizer);
    all.arrays[""].push_back(stored(file, found.masters));
    for (const auto& name : names_of_moments(all.optimizer))
      all.arrays[name].push_back(stored(file, moments_of(file, found, name)));
    if (rank == 0) read_numbers(file, all.optimizer);
  }
  return all;
}

}  // namespace hortator::weights
