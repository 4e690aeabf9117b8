#include "comm/node_lanes.hpp"

#include <ATen/ops/from_blob.h>

#include <sched.h>

#include <algorithm>
#include <array>

#include "base/shard.hpp"
#include "mpi/collectives.hpp"

namespace hortator::comm {
namespace {

constexpr std::int64_t block_bytes = 1 << 20;
constexpr std::size_t blocks_on_their_way = 4;
// With more nodes, or for less data, MPI's trees need fewer messages than an exchange between all nodes.
constexpr int most_nodes = 16;
constexpr std::int64_t least_bytes = 65536;

bool is_complete(MPI_Request& request) {
  int done = 0;
  mpi::check(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Test");
  return done != 0;
}

shard::Range share_range(std::int64_t elements, int nodes, int node, std::size_t element_bytes) {
  return shard::aligned(elements, nodes, node, static_cast<std::int64_t>(64 / element_bytes));
}

}  // namespace

NodeLanes::NodeLanes(const mpi::Communicator& comm, const mpi::Communicator& node)
    : count_(mpi::all_reduce(comm, node.size(), MPI_MIN)),
      has_own_(node.rank() < count_),
      lane_(comm.split(has_own_ ? node.rank() : count_, comm.rank())),
      results_(mpi::Communicator::duplicate(lane_.get())),
      mpi_(mpi::Communicator::duplicate(lane_.get())) {}

void NodeLanes::Cut::add(int offset, int count) {
  offsets.push_back(offset);
  counts.push_back(count);
}

void NodeLanes::all_reduce(std::byte* data, std::int64_t elements, at::ScalarType type, const kernels::Reduction& what,
                           const Step& prepare, const Step& publish) {
  const auto bytes = elements * static_cast<std::int64_t>(kernels::size_of(what.element));
  if (lane_.size() <= most_nodes && bytes >= least_bytes) return exchange(data, elements, what, prepare, publish);
  prepare(0, elements);
  const auto slice = at::from_blob(data, {elements}, at::TensorOptions().dtype(type));
  mpi_.all_reduce(slice, what.op == ReduceOp::mean ? ReduceOp::sum : what.op).wait();
  if (what.divisor != 1) slice.div_(what.divisor);
  publish(0, elements);
}

// A block is two calls, however many nodes there are.
void NodeLanes::exchange(std::byte* data, std::int64_t elements, const kernels::Reduction& what, const Step& prepare,
                         const Step& publish) {
  const auto size = kernels::size_of(what.element);
  const auto per_block = block_bytes / static_cast<std::int64_t>(size);
  const auto begin_of = [&](const Block& block) { return data + static_cast<std::size_t>(block.begin) * size; };
  std::deque<Block> under_way;
  std::int64_t next = 0;
  while (next < elements || !under_way.empty()) {
    if (next < elements && under_way.size() < blocks_on_their_way) {
      auto& block = under_way.emplace_back(Block{.begin = next, .count = std::min(per_block, elements - next)});
      next += block.count;
      prepare(block.begin, block.count);
      send_shares(block, begin_of(block), what);
    }
    bool moved = false;
    for (auto& block : under_way) {
      if (block.is_reduced) continue;
      if (!advance(block, begin_of(block), what)) break;  // results in the blocks' order
      moved = true;
    }
    while (!under_way.empty() && under_way.front().is_reduced && is_complete(under_way.front().request)) {
      publish(under_way.front().begin, under_way.front().count);
      under_way.pop_front();
      moved = true;
    }
    if (!moved) sched_yield();  // to ranks that share this one's core
  }
}

void NodeLanes::send_shares(Block& block, std::byte* begin, const kernels::Reduction& what) {
  const auto size = kernels::size_of(what.element);
  const auto bytes = [&](std::int64_t count) { return static_cast<int>(static_cast<std::size_t>(count) * size); };
  const auto share = [&](int node) { return share_range(block.count, lane_.size(), node, size); };
  const int mine = bytes(share(lane_.rank()).size());
  for (int node = 0; node < lane_.size(); ++node) {
    block.sent.add(bytes(share(node).begin), bytes(share(node).size()));
    block.kept.add(node * mine, mine);
  }
  block.received.resize(static_cast<std::size_t>(mine) * static_cast<std::size_t>(lane_.size()));
  mpi::check(MPI_Ialltoallv(begin, block.sent.counts.data(), block.sent.offsets.data(), MPI_BYTE, block.received.data(),
                            block.kept.counts.data(), block.kept.offsets.data(), MPI_BYTE, lane_.get(), &block.request),
             "MPI_Ialltoallv");
}

void NodeLanes::reduce_own_share(const Block& block, std::byte* begin, const kernels::Reduction& what) const {
  const auto own = static_cast<std::size_t>(lane_.rank());
  std::vector<const std::byte*> inputs;
  for (const int offset : block.kept.offsets) inputs.push_back(block.received.data() + offset);
  const std::array<std::byte*, 1> outputs = {begin + block.sent.offsets[own]};
  kernels::best_kernel()(what, inputs, outputs,
                         static_cast<std::size_t>(block.sent.counts[own]) / kernels::size_of(what.element));
}

void NodeLanes::send_result(Block& block, std::byte* begin) {
  mpi::check(MPI_Iallgatherv(MPI_IN_PLACE, 0, MPI_BYTE, begin, block.sent.counts.data(), block.sent.offsets.data(),
                             MPI_BYTE, results_.get(), &block.request),
             "MPI_Iallgatherv");
}

bool NodeLanes::advance(Block& block, std::byte* begin, const kernels::Reduction& what) {
  if (!is_complete(block.request)) return false;
  reduce_own_share(block, begin, what);
  send_result(block, begin);
  return block.is_reduced = true;
}

}  // namespace hortator::comm
