// NodeTeam: transfers to other nodes in the background.
#include <cstring>

#include "comm/shm/team.hpp"
#include "comm/shm/two_level_reduction.hpp"

namespace hortator::comm {

// Reduces the node's ranks into this rank's memory, which is sent, and copies the result to all ranks of the node.
NodePeerGroups::Slice NodeTeam::slice_in_window(const WindowPosition& position, std::int64_t elements,
                                                at::ScalarType type, const kernels::Reduction& what) const {
  const auto mine = slice_of(rank(), elements, kernels::size_of(what.element));
  const auto offset_of = [=](std::int64_t begin) { return bytes_of(mine.begin + begin, what); };
  return {.data = position.address_in(rank()) + offset_of(0),
          .elements = mine.size(),
          .type = type,
          .what = over_nodes(what),
          .prepare =
              [=, this, in_node = in_one_node(what)](std::int64_t begin, std::int64_t count) {
                const auto offset = offset_of(begin);
                reduce(in_node, inputs_at(position, offset), {position.address_in(rank()) + offset}, count);
              },
          .publish =
              [=, this](std::int64_t begin, std::int64_t count) {
                const auto offset = offset_of(begin);
                for (const int peer : ranks_) {
                  if (peer == rank()) continue;
                  std::memcpy(position.address_in(peer) + offset, position.address_in(rank()) + offset,
                              bytes_of(count, what));
                }
              },
          .memory = position.segment};
}

PendingTransferPtr NodeTeam::start_reduce(const WindowPosition& position, std::int64_t elements, at::ScalarType type,
                                          const kernels::Reduction& what) {
  if (!peer_groups_->has_slice()) return nullptr;
  return peer_groups_->start_all_reduce(slice_in_window(position, elements, type, what));
}

// Each rank sums up its node's contributions to the parts of the ranks in its peer group.
PendingTransferPtr NodeTeam::start_reduce_part(const WindowPosition& position, const at::Tensor& output,
                                               const kernels::Reduction& what) {
  const auto elements = output.numel();
  const auto combine = [=, this, in_node = in_one_node(what)](int part, std::int64_t begin, std::int64_t count,
                                                              std::byte* to) {
    reduce(in_node, inputs_at(position, bytes_of(elements * part + begin, what)), {to}, count);
  };
  return peer_groups_->start_reduce_scatter(
      {.elements = elements, .element_bytes = output.element_size(), .memory = {position.segment}}, over_nodes(what),
      combine, static_cast<std::byte*>(output.data_ptr()));
}

// Each rank receives the parts of the ranks in its peer group and copies them to all ranks of its node.
PendingTransferPtr NodeTeam::start_gather(const WindowPosition& output, const at::Tensor& input) {
  const auto bytes = input.element_size();
  const auto elements = input.numel();
  const auto receive = [=, this](int part, std::int64_t begin, std::int64_t count, const std::byte* from) {
    const auto offset = static_cast<std::size_t>((elements * part + begin) * bytes);
    for (int peer = 0; peer < (output.segment->is_common ? 1 : size()); ++peer)
      std::memcpy(output.address_in(peer) + offset, from, static_cast<std::size_t>(count * bytes));
  };
  return peer_groups_->start_all_gather({.elements = elements,
                                         .element_bytes = bytes,
                                         .memory = {output.segment, std::make_shared<const at::Tensor>(input)}},
                                        static_cast<const std::byte*>(input.const_data_ptr()), receive);
}

}  // namespace hortator::comm
