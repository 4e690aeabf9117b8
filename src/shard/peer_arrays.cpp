#include "shard/peer_arrays.hpp"

#include <utility>

namespace hortator::shard {
namespace {

std::vector<std::string> names_of(const std::vector<NamedTensor>& arrays) {
  std::vector<std::string> names;
  for (const auto& array : arrays) names.push_back(array.name);
  return names;
}

std::vector<Page> one_page_each(const std::vector<NamedTensor>& arrays) {
  std::vector<Page> pages;
  for (const auto& array : arrays) {
    const auto number = static_cast<int>(pages.size());
    const auto bytes = array.tensor.storage().nbytes();
    pages.push_back({.number = number, .places = {{.storage = number, .bytes = bytes}}, .bytes = bytes});
  }
  return pages;
}

}  // namespace

PeerArrays::PeerArrays(comm::Communicator& peers, const std::vector<ArraySpec>& specs, std::vector<at::Tensor> parts,
                       const Options& options)
    : arrays_(absent_arrays(specs)) {
  auto store = std::make_unique<PeerStore>(peers, std::move(parts), names_of(arrays_), options.first_rank);
  pager_ = std::make_unique<Pager>(
      PagedStorages(arrays_), one_page_each(arrays_), std::move(store),
      Pager::Options{.budget_bytes = options.resident_bytes, .fetch_ahead = 0, .origin = Pager::Origin::store});
}

}  // namespace hortator::shard
