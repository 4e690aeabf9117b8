#include "comm/node_lanes.hpp"

#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <array>

#include "base/shard.hpp"
#include "mpi/collectives.hpp"

namespace hortator::comm {
namespace {

constexpr std::int64_t block_bytes = 1 << 20;
constexpr std::size_t blocks_on_their_way = 4;
// With more nodes, or for less data, MPI's trees need fewer messages than an exchange between all pairs.
constexpr int most_nodes = 16;
constexpr std::int64_t least_bytes = 65536;

constexpr int tag_share = 1;
constexpr int tag_result = 2;

bool all_complete(std::vector<MPI_Request>& requests) {
  int done = 0;
  mpi::check(MPI_Testall(static_cast<int>(requests.size()), requests.data(), &done, MPI_STATUSES_IGNORE),
             "MPI_Testall");
  if (done != 0) requests.clear();
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
      mpi_(mpi::Communicator::duplicate(lane_.get())) {}

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

void NodeLanes::exchange(std::byte* data, std::int64_t elements, const kernels::Reduction& what, const Step& prepare,
                         const Step& publish) {
  const auto per_block = block_bytes / static_cast<std::int64_t>(kernels::size_of(what.element));
  std::deque<Block> under_way;
  std::int64_t next = 0;
  while (next < elements || !under_way.empty()) {
    if (next < elements && under_way.size() < blocks_on_their_way) {
      under_way.push_back({.begin = next, .count = std::min(per_block, elements - next)});
      next += under_way.back().count;
      prepare(under_way.back().begin, under_way.back().count);
      send_shares(under_way.back(), data, what);
    }
    for (auto& block : under_way) {
      if (!advance(block, data, what)) break;  // in order: so are the messages
    }
    while (!under_way.empty() && under_way.front().is_reduced && under_way.front().requests.empty()) {
      publish(under_way.front().begin, under_way.front().count);
      under_way.pop_front();
    }
  }
}

std::byte* NodeLanes::share_of(std::byte* data, const Block& block, int node, const kernels::Reduction& what) const {
  const auto size = kernels::size_of(what.element);
  const auto share = share_range(block.count, lane_.size(), node, size);
  return data + static_cast<std::size_t>(block.begin + share.begin) * size;
}

int NodeLanes::share_bytes(const Block& block, int node, const kernels::Reduction& what) const {
  const auto size = kernels::size_of(what.element);
  return static_cast<int>(static_cast<std::size_t>(share_range(block.count, lane_.size(), node, size).size()) * size);
}

void NodeLanes::send_shares(Block& block, std::byte* data, const kernels::Reduction& what) {
  const int mine = share_bytes(block, lane_.rank(), what);
  block.received.resize(static_cast<std::size_t>(mine) * static_cast<std::size_t>(lane_.size()));
  for (int node = 0; node < lane_.size(); ++node) {
    if (node == lane_.rank()) continue;
    auto* place = block.received.data() + static_cast<std::size_t>(mine) * static_cast<std::size_t>(node);
    mpi::check(MPI_Irecv(place, mine, MPI_BYTE, node, tag_share, lane_.get(), &block.requests.emplace_back()),
               "MPI_Irecv");
    mpi::check(MPI_Isend(share_of(data, block, node, what), share_bytes(block, node, what), MPI_BYTE, node, tag_share,
                         lane_.get(), &block.requests.emplace_back()),
               "MPI_Isend");
  }
}

void NodeLanes::reduce_own_share(Block& block, std::byte* data, const kernels::Reduction& what) {
  const int mine = share_bytes(block, lane_.rank(), what);
  std::byte* own = share_of(data, block, lane_.rank(), what);
  std::vector<const std::byte*> inputs;
  for (int node = 0; node < lane_.size(); ++node) {
    const auto* received = block.received.data() + static_cast<std::size_t>(mine) * static_cast<std::size_t>(node);
    inputs.push_back(node == lane_.rank() ? own : received);
  }
  const std::array<std::byte*, 1> outputs = {own};
  kernels::best_kernel()(what, inputs, outputs, static_cast<std::size_t>(mine) / kernels::size_of(what.element));
}

void NodeLanes::send_result(Block& block, std::byte* data, const kernels::Reduction& what) {
  for (int node = 0; node < lane_.size(); ++node) {
    if (node == lane_.rank()) continue;
    mpi::check(MPI_Irecv(share_of(data, block, node, what), share_bytes(block, node, what), MPI_BYTE, node, tag_result,
                         lane_.get(), &block.requests.emplace_back()),
               "MPI_Irecv");
    mpi::check(MPI_Isend(share_of(data, block, lane_.rank(), what), share_bytes(block, lane_.rank(), what), MPI_BYTE,
                         node, tag_result, lane_.get(), &block.requests.emplace_back()),
               "MPI_Isend");
  }
}

bool NodeLanes::advance(Block& block, std::byte* data, const kernels::Reduction& what) {
  if (!all_complete(block.requests)) return false;
  if (block.is_reduced) return true;
  reduce_own_share(block, data, what);
  send_result(block, data, what);
  block.is_reduced = true;
  return true;
}

}  // namespace hortator::comm
