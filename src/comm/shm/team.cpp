#include "comm/shm/team.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <numeric>

#include "comm/kernels/reduce_kernels.hpp"
#include "mpi/collectives.hpp"
#include "runtime/identity/shared_name.hpp"

namespace hortator::comm {
namespace {

// Up to this size of all ranks' blocks together each rank reduces the whole block: that saves a barrier.
constexpr std::size_t small_bytes = 32768;

std::shared_ptr<NodePeerGroups> make_peer_groups(const mpi::Communicator& comm, const mpi::Communicator& node) {
  if (mpi::all_reduce(comm, node.size(), mpi::Op::min) == comm.size()) return nullptr;
  return std::make_shared<NodePeerGroups>(comm, node);
}

// A reduction in two levels: within each node, then over the nodes.

std::size_t bytes_of(std::int64_t elements, const kernels::Reduction& what) {
  return static_cast<std::size_t>(elements) * kernels::size_of(what.element);
}

// Whether the division of a mean comes before the second level. This holds for 16-bit floats: the nodes' sums are
// rounded to 16 bits before they travel, and must not overflow.
bool divides_first(const kernels::Reduction& what) { return kernels::size_of(what.element) == 2; }

// The first level.
kernels::Reduction in_one_node(kernels::Reduction what) {
  if (!divides_first(what)) what.divisor = 1;
  return what;
}

// The second level.
kernels::Reduction over_nodes(kernels::Reduction what) {
  if (divides_first(what)) what.divisor = 1;
  return what;
}

}  // namespace

NodeTeam::NodeTeam(const mpi::Communicator& comm, std::size_t staging_bytes)
    : node_(comm.node()),
      peer_groups_(make_peer_groups(comm, node_)),
      board_(node_, comm),
      window_(node_, comm),
      staging_(node_, comm, staging_bytes, runtime::shared_name("staging")),
      half_bytes_(staging_bytes / 2),
      kernel_(kernels::best_kernel()),
      ranks_(static_cast<std::size_t>(node_.size())) {
  std::iota(ranks_.begin(), ranks_.end(), 0);
}

void NodeTeam::reduce(const kernels::Reduction& what, const std::vector<const std::byte*>& inputs,
                      const std::vector<std::byte*>& outputs, std::int64_t elements) const {
  if (elements > 0) kernel_(what, inputs, outputs, static_cast<std::size_t>(elements));
}

std::vector<const std::byte*> NodeTeam::inputs_at(const WindowPosition& position, std::size_t offset) const {
  std::vector<const std::byte*> inputs;
  for (const int peer : ranks_) inputs.push_back(position.address_in(peer) + offset);
  return inputs;
}

std::vector<std::byte*> NodeTeam::outputs_at(const WindowPosition& position, std::size_t offset) const {
  std::vector<std::byte*> outputs;
  for (const int peer : ranks_) outputs.push_back(position.address_in(peer) + offset);
  return outputs;
}

// Slices begin on pages: no cache line has two writers, and pages stay in the memory near their owner.
core::Range NodeTeam::slice_of(int rank, std::int64_t elements, std::size_t element_bytes) const {
  const int owners = peer_groups_ ? peer_groups_->count() : size();
  if (rank >= owners) return {elements, elements};
  return core::aligned(elements, owners, rank, static_cast<std::int64_t>(4096 / element_bytes));
}

void NodeTeam::reduce_in_window(const WindowPosition& position, std::int64_t elements, at::ScalarType type,
                                const kernels::Reduction& what) {
  if (!peer_groups_) {
    const auto mine = slice_of(rank(), elements, kernels::size_of(what.element));
    return reduce(what, inputs_at(position, bytes_of(mine.begin, what)),
                  outputs_at(position, bytes_of(mine.begin, what)), mine.size());
  }
  if (peer_groups_->has_slice()) peer_groups_->all_reduce(slice_in_window(position, elements, type, what));
}

void NodeTeam::reduce_staged(std::byte* data, std::int64_t elements, at::ScalarType type,
                             const kernels::Reduction& what) {
  const auto block = static_cast<std::int64_t>(half_bytes_ / kernels::size_of(what.element));
  for (std::int64_t begin = 0; begin < elements; begin += block) {
    const auto count = std::min(block, elements - begin);
    std::byte* here = data + bytes_of(begin, what);
    std::memcpy(stage_of(rank()), here, bytes_of(count, what));
    board_.meet();
    if (!peer_groups_ && bytes_of(count, what) * static_cast<std::size_t>(size()) <= small_bytes) {
      reduce_block_on_each_rank(here, count, what);
    } else {
      reduce_block_by_slices(here, count, type, what);
    }
    ++turn_;
  }
}

void NodeTeam::reduce_block_on_each_rank(std::byte* block, std::int64_t elements,
                                         const kernels::Reduction& what) const {
  std::vector<const std::byte*> inputs;
  for (const int peer : ranks_) inputs.push_back(stage_of(peer));
  reduce(what, inputs, {block}, elements);
}

void NodeTeam::reduce_block_by_slices(std::byte* block, std::int64_t elements, at::ScalarType type,
                                      const kernels::Reduction& what) {
  const auto mine = slice_of(rank(), elements, kernels::size_of(what.element));
  std::byte* own = stage_of(rank()) + bytes_of(mine.begin, what);
  std::vector<const std::byte*> inputs;
  for (const int peer : ranks_) inputs.push_back(stage_of(peer) + bytes_of(mine.begin, what));
  reduce(peer_groups_ ? in_one_node(what) : what, inputs, {own}, mine.size());
  if (peer_groups_ && peer_groups_->has_slice()) {
    const auto nothing = [](std::int64_t, std::int64_t) {};
    peer_groups_->all_reduce({.data = own,
                              .elements = mine.size(),
                              .type = type,
                              .what = over_nodes(what),
                              .prepare = nothing,
                              .publish = nothing});
  }
  board_.meet();
  for (const int peer : ranks_) {
    const auto slice = slice_of(peer, elements, kernels::size_of(what.element));
    const auto offset = bytes_of(slice.begin, what);
    std::memcpy(block + offset, stage_of(peer) + offset, bytes_of(slice.size(), what));
  }
}

void NodeTeam::reduce_part_in_window(const WindowPosition& position, std::byte* output, std::int64_t elements,
                                     const kernels::Reduction& what) {
  reduce(what, inputs_at(position, bytes_of(elements * rank(), what)), {output}, elements);
}

void NodeTeam::reduce_part_staged(const std::byte* input, std::byte* output, std::int64_t elements,
                                  const kernels::Reduction& what) {
  const auto block = static_cast<std::int64_t>(half_bytes_ / kernels::size_of(what.element)) / size();
  for (std::int64_t begin = 0; begin < elements; begin += block) {
    const auto count = std::min(block, elements - begin);
    for (int peer = 0; peer < size(); ++peer) {
      std::memcpy(stage_of(rank()) + bytes_of(peer * count, what), input + bytes_of(peer * elements + begin, what),
                  bytes_of(count, what));
    }
    board_.meet();
    std::vector<const std::byte*> inputs;
    for (int peer = 0; peer < size(); ++peer) inputs.push_back(stage_of(peer) + bytes_of(rank() * count, what));
    reduce(what, inputs, {output + bytes_of(begin, what)}, count);
    ++turn_;
  }
}

void NodeTeam::gather_in_window(const WindowPosition& output, const std::byte* input, std::size_t bytes) {
  const auto offset = bytes * static_cast<std::size_t>(rank());
  for (int peer = 0; peer < (output.segment->is_common ? 1 : size()); ++peer) {
    std::byte* position = output.address_in(peer) + offset;
    if (position != input) std::memcpy(position, input, bytes);
  }
}

void NodeTeam::gather_staged(std::byte* output, const std::byte* input, std::size_t bytes) {
  for (std::size_t begin = 0; begin < bytes; begin += half_bytes_) {
    const auto count = std::min(half_bytes_, bytes - begin);
    std::memcpy(stage_of(rank()), input + begin, count);
    board_.meet();
    for (int peer = 0; peer < size(); ++peer) {
      std::memcpy(output + static_cast<std::size_t>(peer) * bytes + begin, stage_of(peer), count);
    }
    ++turn_;
  }
}

// A rank's half of the staging memory has a slot for each peer.
void NodeTeam::exchange_staged(const std::vector<PeerBuffers::Bytes>& to, const std::vector<PeerBuffers::Bytes>& from) {
  std::uint64_t largest = 0;
  for (const auto& bytes : to) largest = std::max<std::uint64_t>(largest, bytes.size);
  std::vector<std::uint64_t> of_ranks(to.size());
  gather_staged(reinterpret_cast<std::byte*>(of_ranks.data()), reinterpret_cast<const std::byte*>(&largest),
                sizeof largest);
  largest = *std::ranges::max_element(of_ranks);
  const auto slot = half_bytes_ / to.size();
  const auto count_of = [&](const PeerBuffers::Bytes& bytes, std::size_t begin) {
    return bytes.size > begin ? std::min(slot, bytes.size - begin) : 0;
  };
  for (std::size_t begin = 0; begin < largest; begin += slot) {
    for (std::size_t peer = 0; peer < to.size(); ++peer) {
      const auto count = count_of(to[peer], begin);
      if (count > 0) std::memcpy(stage_of(rank()) + peer * slot, to[peer].data + begin, count);
    }
    board_.meet();
    const auto mine = static_cast<std::size_t>(rank()) * slot;
    for (std::size_t peer = 0; peer < from.size(); ++peer) {
      const auto count = count_of(from[peer], begin);
      if (count > 0) std::memcpy(from[peer].data + begin, stage_of(static_cast<int>(peer)) + mine, count);
    }
    ++turn_;
  }
}

void NodeTeam::broadcast_in_window(const WindowPosition& position, std::size_t bytes, int root) {
  if (rank() != root && !position.segment->is_common)
    std::memcpy(position.address_in(rank()), position.address_in(root), bytes);
}

void NodeTeam::broadcast_staged(std::byte* data, std::size_t bytes, int root) {
  for (std::size_t begin = 0; begin < bytes; begin += half_bytes_) {
    const auto count = std::min(half_bytes_, bytes - begin);
    if (rank() == root) std::memcpy(stage_of(root), data + begin, count);
    board_.meet();
    if (rank() != root) std::memcpy(data + begin, stage_of(root), count);
    ++turn_;
  }
}

// Transfers to other nodes, in the background.

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
