#include "parallel/zero/peer_arrays.hpp"

#include <utility>

namespace hortator::parallel {
namespace {

std::vector<std::string> names_of(const std::vector<paging::NamedTensor>& arrays) {
  std::vector<std::string> names;
  for (const auto& array : arrays) names.push_back(array.name);
  return names;
}

}  // namespace

PeerArrays::PeerArrays(comm::Communicator& peers, const std::vector<ArraySpec>& specs, std::vector<at::Tensor> parts,
                       const Options& options)
    : arrays_(absent_arrays(specs, parts.front().device())) {
  const auto device = parts.front().device();
  auto store = std::make_unique<PeerStore>(
      PeerStore::Ranks{
          .peers = peers, .first = options.first_rank, .stride = options.rank_stride, .host = options.host},
      std::move(parts), names_of(arrays_));
  pager_ = std::make_unique<paging::Pager>(paging::PagedStorages(arrays_, paging::PagedStorages::where_on(device)),
                                           one_page_each(arrays_), std::move(store),
                                           paging::Pager::Options{.budget_bytes = options.resident_bytes,
                                                                  .fetch_ahead = device.is_cpu() ? 0 : 1,
                                                                  .origin = paging::Pager::Origin::store});
}

}  // namespace hortator::parallel
