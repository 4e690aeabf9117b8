#include "comm/shm/peer_groups.hpp"

#include <ATen/ops/empty_like.h>
#include <ATen/ops/from_blob.h>

#include <sched.h>

#include <array>
#include <numeric>

#include "comm/mpi/mpi_datatype.hpp"
#include "core/range.hpp"
#include "mpi/collectives.hpp"
#include "mpi/communicator.hpp"
#include "mpi/native.hpp"

namespace hortator::comm {
namespace {

using Block = PendingTransfer::Block;

// With more nodes, or for less data, MPI's reduction trees need fewer messages than an exchange between all nodes.
constexpr int max_nodes = 16;
constexpr std::int64_t min_bytes = 65536;

core::Range node_range(std::int64_t elements, int nodes, int node, std::size_t element_bytes) {
  return core::aligned(elements, nodes, node, static_cast<std::int64_t>(64 / element_bytes));
}

bool is_large(const NodePeerGroups::Slice& slice) {
  return slice.elements * static_cast<std::int64_t>(kernels::size_of(slice.what.element)) >= min_bytes;
}

at::Tensor tensor_of(const NodePeerGroups::Slice& slice) {
  return at::from_blob(slice.data, {slice.elements}, at::TensorOptions().dtype(slice.type));
}

// MPI has no mean: a sum that is divided afterwards.
ReduceOp in_mpi(ReduceOp op) { return op == ReduceOp::mean ? ReduceOp::sum : op; }

void divide(const at::Tensor& sum, const kernels::Reduction& what) {
  if (what.divisor != 1) sum.div_(what.divisor);
}

// Whether the maximum of `number` is also its minimum. @collective
bool equal_on_all_nodes(const mpi::Communicator& comm, int number, int min) {
  return mpi::all_reduce(comm, number, mpi::Op::max) == min;
}

// The group's ranks by their numbers in `comm`.
std::vector<int> ranks_in(const mpi::Communicator& group, const mpi::Communicator& comm) {
  std::vector<int> own(static_cast<std::size_t>(group.size()));
  std::iota(own.begin(), own.end(), 0);
  std::vector<int> ranks(own.size());
  MPI_Group from = MPI_GROUP_NULL;
  MPI_Group to = MPI_GROUP_NULL;
  mpi::check(MPI_Comm_group(mpi::native(group), &from), "MPI_Comm_group");
  mpi::check(MPI_Comm_group(mpi::native(comm), &to), "MPI_Comm_group");
  mpi::check(MPI_Group_translate_ranks(from, group.size(), own.data(), to, ranks.data()), "MPI_Group_translate_ranks");
  MPI_Group_free(&to);
  MPI_Group_free(&from);
  return ranks;
}

}  // namespace

NodePeerGroups::NodePeerGroups(const mpi::Communicator& comm, const mpi::Communicator& node)
    : count_(mpi::all_reduce(comm, node.size(), mpi::Op::min)),
      has_slice_(node.rank() < count_),
      include_all_ranks_(equal_on_all_nodes(comm, node.size(), count_)),
      group_(comm.split(has_slice_ ? node.rank() : count_, comm.rank())),
      results_(group_.duplicate()),
      mpi_(group_.duplicate()),
      group_ranks_(ranks_in(group_, comm)),
      nodes_(mpi::broadcast(node, group_.size())) {}

bool NodePeerGroups::can_move_in_background() const { return nodes_ <= max_nodes; }

void NodePeerGroups::all_reduce(const Slice& slice) {
  if (can_move_in_background() && is_large(slice)) {
    const auto transfer = make_transfer(exchange_route(slice));
    while (!transfer->advance()) sched_yield();  // to ranks that share this one's core
    return;
  }
  slice.prepare(0, slice.elements);
  const auto tensor = tensor_of(slice);
  mpi_.all_reduce(tensor, in_mpi(slice.what.op)).wait();
  divide(tensor, slice.what);
  slice.publish(0, slice.elements);
}

PendingTransferPtr NodePeerGroups::start_all_reduce(const Slice& slice) {
  return make_transfer(is_large(slice) ? exchange_route(slice) : tree_route(slice));
}

PendingTransfer::Route NodePeerGroups::exchange_route(const Slice& slice) {
  const auto size = kernels::size_of(slice.what.element);
  const auto begin_of = [=](const Block& block) { return slice.data + static_cast<std::size_t>(block.begin) * size; };
  return {.elements = slice.elements,
          .per_block = PendingTransfer::block_bytes / static_cast<std::int64_t>(size),
          .send =
              [=, this](Block& block) {
                slice.prepare(block.begin, block.count);
                send_ranges(block, begin_of(block), slice.what);
              },
          .on_received =
              [=, this](Block& block) {
                reduce_own_range(block, begin_of(block), slice.what);
                send_result(block, begin_of(block));
              },
          .publish = [=](const Block& block) { slice.publish(block.begin, block.count); },
          .memory = {shared_from_this(), slice.memory}};
}

PendingTransfer::Route NodePeerGroups::tree_route(const Slice& slice) {
  struct Sums {
    at::Tensor mine;
    at::Tensor all;
  };
  const auto sums = std::make_shared<Sums>();
  return {.elements = slice.elements,
          .per_block = std::max<std::int64_t>(slice.elements, 1),
          .send =
              [=, this](Block& block) {
                slice.prepare(0, slice.elements);
                const auto type = reduction_type(slice.type);
                sums->mine = tensor_of(slice).to(type, false, true);
                sums->all = at::empty_like(sums->mine);
                mpi::check(
                    MPI_Iallreduce(sums->mine.const_data_ptr(), sums->all.mutable_data_ptr(),
                                   static_cast<int>(slice.elements), mpi_datatype(type),
                                   mpi_operation(type, slice.what.op), mpi::native(group_), mpi::native(block.request)),
                    "MPI_Iallreduce");
              },
          .on_received =
              [=](Block&) {
                const auto tensor = tensor_of(slice);
                tensor.copy_(sums->all);
                divide(tensor, slice.what);
              },
          .publish = [=](const Block&) { slice.publish(0, slice.elements); },
          .memory = {shared_from_this(), slice.memory}};
}

void NodePeerGroups::send_ranges(Block& block, std::byte* begin, const kernels::Reduction& what) {
  const auto size = kernels::size_of(what.element);
  const auto bytes = [&](std::int64_t count) { return static_cast<int>(static_cast<std::size_t>(count) * size); };
  const auto range = [&](int node) { return node_range(block.count, group_.size(), node, size); };
  const int mine = bytes(range(group_.rank()).size());
  for (int node = 0; node < group_.size(); ++node) {
    block.sent.add(bytes(range(node).begin), bytes(range(node).size()));
    block.kept.add(node * mine, mine);
  }
  block.received.resize(static_cast<std::size_t>(mine) * static_cast<std::size_t>(group_.size()));
  mpi::check(MPI_Ialltoallv(begin, block.sent.counts.data(), block.sent.offsets.data(), MPI_BYTE, block.received.data(),
                            block.kept.counts.data(), block.kept.offsets.data(), MPI_BYTE, mpi::native(group_),
                            mpi::native(block.request)),
             "MPI_Ialltoallv");
}

void NodePeerGroups::reduce_own_range(const Block& block, std::byte* begin, const kernels::Reduction& what) const {
  const auto own = static_cast<std::size_t>(group_.rank());
  std::vector<const std::byte*> inputs;
  for (const int offset : block.kept.offsets) inputs.push_back(block.received.data() + offset);
  const std::array<std::byte*, 1> outputs = {begin + block.sent.offsets[own]};
  kernels::best_kernel()(what, inputs, outputs,
                         static_cast<std::size_t>(block.sent.counts[own]) / kernels::size_of(what.element));
}

void NodePeerGroups::send_result(Block& block, std::byte* begin) {
  mpi::check(MPI_Iallgatherv(MPI_IN_PLACE, 0, MPI_BYTE, begin, block.sent.counts.data(), block.sent.offsets.data(),
                             MPI_BYTE, mpi::native(results_), mpi::native(block.request)),
             "MPI_Iallgatherv");
}

// Transfers of tensors that have a part for each rank.

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
             mpi::check(
                 MPI_Ialltoall(block.packed.data(), static_cast<int>(bytes), MPI_BYTE, block.received.data(),
                               static_cast<int>(bytes), MPI_BYTE, mpi::native(group_), mpi::native(block.request)),
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
             mpi::check(MPI_Iallgather(input + static_cast<std::size_t>(block.begin) * size, static_cast<int>(bytes),
                                       MPI_BYTE, block.received.data(), static_cast<int>(bytes), MPI_BYTE,
                                       mpi::native(group_), mpi::native(block.request)),
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
