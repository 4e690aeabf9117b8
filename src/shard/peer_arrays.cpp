#include "shard/peer_arrays.hpp"

#include <ATen/ops/zeros.h>

#include <utility>

namespace hortator::shard {
namespace {

std::vector<at::Tensor> make_parts(const std::vector<NamedTensor>& arrays, int ranks) {
  std::vector<at::Tensor> parts;
  for (const auto& array : arrays) parts.push_back(at::zeros({array.tensor.numel() / ranks}, array.tensor.options()));
  return parts;
}

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

PeerArrays::PeerArrays(comm::Communicator& peers, const std::vector<ArraySpec>& specs, const Options& options)
    : arrays_(absent_arrays(specs)) {
  auto store =
      std::make_unique<PeerStore>(peers, make_parts(arrays_, peers.size()), names_of(arrays_), options.first_rank);
  store_ = store.get();
  pager_ = std::make_unique<Pager>(
      PagedStorages(arrays_), one_page_each(arrays_), std::move(store),
      Pager::Options{.budget_bytes = options.resident_bytes, .fetch_ahead = 0, .origin = Pager::Origin::store});
}

void PeerArrays::begin_use() {
  if (store_->take_difference()) pager_->start_over();
}

}  // namespace hortator::shard
