// NodePeerGroups: transfers of tensors that have a part for each rank.
#include <array>

#include "comm/shm/peer_groups.hpp"
#include "mpi/communicator.hpp"

namespace hortator::comm {
namespace {

using Block = PendingTransfer::Block;

}  // namespace

PendingTransferPtr NodePeerGroups::start_reduce_scatter(const Parts& parts, const kernels::Reduction& what,
                                                        const Combine& combine, std::byte* output) {
  const auto size = static_cast<std::size_t>(parts.element_bytes);
  const auto nodes = static_cast<std::size_t>(nodes_);
  auto memory = parts.memory;
  memory.push_back(shared_from_this());
  return make_transfer(
      {.elements = parts.elements,
       .per_block = PendingTransfer::block_bytes / parts.element_bytes / nodes_,
       .send =
           [=, this](Block& block) {
             const auto bytes = static_cast<std::size_t>(block.count) * size;
             block.packed.resize(bytes * nodes);
             block.received.resize(bytes * nodes);
             for (std::size_t node = 0; node < nodes; ++node)
               combine(group_ranks_[node], block.begin, block.count, block.packed.data() + node * bytes);
             mpi::check(MPI_Ialltoall(block.packed.data(), static_cast<int>(bytes), MPI_BYTE, block.received.data(),
                                      static_cast<int>(bytes), MPI_BYTE, group_.get(), &block.request),
                        "MPI_Ialltoall");
           },
       .on_received =
           [=](Block& block) {
             const auto bytes = static_cast<std::size_t>(block.count) * size;
             std::vector<const std::byte*> inputs;
             for (std::size_t node = 0; node < nodes; ++node) inputs.push_back(block.received.data() + node * bytes);
             const std::array<std::byte*, 1> outputs = {output + static_cast<std::size_t>(block.begin) * size};
             kernels::best_kernel()(what, inputs, outputs, static_cast<std::size_t>(block.count));
           },
       .publish = [](const Block&) {},
       .memory = std::move(memory)});
}

PendingTransferPtr NodePeerGroups::start_all_gather(const Parts& parts, const std::byte* input,
                                                    const Receive& receive) {
  const auto size = static_cast<std::size_t>(parts.element_bytes);
  auto memory = parts.memory;
  memory.push_back(shared_from_this());
  return make_transfer(
      {.elements = parts.elements,
       .per_block = PendingTransfer::block_bytes / parts.element_bytes / nodes_,
       .send =
           [=, this](Block& block) {
             const auto bytes = static_cast<std::size_t>(block.count) * size;
             block.received.resize(bytes * static_cast<std::size_t>(nodes_));
             mpi::check(
                 MPI_Iallgather(input + static_cast<std::size_t>(block.begin) * size, static_cast<int>(bytes), MPI_BYTE,
                                block.received.data(), static_cast<int>(bytes), MPI_BYTE, group_.get(), &block.request),
                 "MPI_Iallgather");
           },
       .on_received = [](Block&) {},
       .publish =
           [=, this](const Block& block) {
             const auto bytes = static_cast<std::size_t>(block.count) * size;
             for (std::size_t node = 0; node < group_ranks_.size(); ++node)
               receive(group_ranks_[node], block.begin, block.count, block.received.data() + node * bytes);
           },
       .memory = std::move(memory)});
}

}  // namespace hortator::comm
