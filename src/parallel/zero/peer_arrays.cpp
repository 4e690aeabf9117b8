#include "parallel/zero/peer_arrays.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include "machine/memory/system_memory.hpp"

namespace hortator::parallel {
namespace {

std::vector<PeerStore::OwnedPart> owned_parts(const std::vector<ArraySpec>& specs, std::vector<at::Tensor> parts) {
  std::vector<PeerStore::OwnedPart> owned;
  for (std::size_t i = 0; i < specs.size(); ++i)
    owned.push_back({.values = std::move(parts[i]), .name = specs[i].name, .is_int8 = specs[i].is_int8});
  return owned;
}

std::size_t largest_bytes(const std::vector<paging::NamedTensor>& arrays) {
  std::size_t bytes = 0;
  for (const auto& array : arrays) bytes = std::max(bytes, array.tensor.storage().nbytes());
  return machine::whole_pages(bytes);
}

constexpr std::size_t frames_ahead = 3;  // of the array in use, the next one, and the one before

// Memory of the communicator for as many frames as fit into the budget. Undefined if none does. @collective
at::Tensor allocate_frames(comm::Communicator& peers, const std::vector<paging::NamedTensor>& arrays,
                           std::uint64_t budget) {
  const auto bytes = largest_bytes(arrays);
  const auto count = std::min<std::size_t>(budget == 0 ? frames_ahead : budget / bytes, arrays.size());
  return count > 0 ? peers.allocate(static_cast<std::int64_t>(count * bytes), at::kByte) : at::Tensor();
}

std::vector<std::span<std::byte>> frames_in(const at::Tensor& memory, std::size_t bytes) {
  std::vector<std::span<std::byte>> frames;
  if (!memory.defined()) return frames;
  auto* begin = static_cast<std::byte*>(memory.mutable_data_ptr());
  for (std::size_t offset = 0; offset < memory.nbytes(); offset += bytes) frames.emplace_back(begin + offset, bytes);
  return frames;
}

}  // namespace

PeerArrays::PeerArrays(comm::Communicator& peers, const std::vector<ArraySpec>& specs, std::vector<at::Tensor> parts,
                       const Options& options)
    : arrays_(absent_arrays(specs, parts.front().device())) {
  const auto device = parts.front().device();
  const bool on_hosts = device.is_cpu() && options.gathers_ahead && peers.traits().shares_memory && peers.size() > 1;
  if (on_hosts) frames_ = allocate_frames(peers, arrays_, options.resident_bytes);
  auto store = std::make_unique<PeerStore>(PeerStore::Ranks{.peers = peers,
                                                            .first = options.first_rank,
                                                            .stride = options.rank_stride,
                                                            .host = options.host,
                                                            .casts = options.casts},
                                           owned_parts(specs, std::move(parts)));
  pager_ = std::make_unique<paging::Pager>(
      paging::PagedStorages(arrays_, paging::PagedStorages::where_on(device)), one_page_each(arrays_), std::move(store),
      paging::Pager::Options{.budget_bytes = options.resident_bytes,
                             .fetch_ahead = on_hosts || !device.is_cpu() ? 1 : 0,
                             .origin = paging::Pager::Origin::store,
                             .frames = frames_in(frames_, largest_bytes(arrays_))});
}

}  // namespace hortator::parallel
