// All ranks of this test are nodes of their own, or two of them are one (traffic.hpp).
#include "comm/node_lanes.hpp"

#include <ATen/ops/arange.h>

#include <hortator/error.hpp>

#include "comm/node_communicator.hpp"
#include "integration/scale/traffic.hpp"
#include "support/catch.hpp"

using namespace hortator;
using comm::ReduceOp;

namespace {

// Not a multiple of the ranks, the blocks, or a line of the cache; more blocks than are on their way at once.
constexpr std::int64_t many = 3'000'001;
constexpr std::int64_t some = 40'007;  // one block, and more than MPI's own way is used for
constexpr std::int64_t few = 5;

at::Tensor sample(int rank, std::int64_t elements) {
  return at::arange(elements).remainder(1001).add(rank + 1).to(at::kFloat);
}

at::Tensor expected(int ranks, std::int64_t elements, ReduceOp op) {
  auto result = sample(0, elements);
  for (int rank = 1; rank < ranks; ++rank) {
    op == ReduceOp::max ? result = at::maximum(result, sample(rank, elements)) : result += sample(rank, elements);
  }
  if (op == ReduceOp::mean) result /= ranks;
  return result;
}

}  // namespace

TEST_CASE("between nodes tensors of every length are reduced, in the window and elsewhere") {
  for (const int ranks_a_node : {1, 2}) {
    scale::pretend_nodes_of(ranks_a_node);
    comm::NodeCommunicator communicator(mpi::Communicator::world());
    for (const auto elements : {many, some, few}) {
      for (const auto op : {ReduceOp::sum, ReduceOp::mean, ReduceOp::max}) {
        INFO(ranks_a_node << " ranks a node, " << elements << " elements, " << comm::name(op));
        const auto window = communicator.allocate(elements, at::kFloat);
        window.copy_(sample(communicator.rank(), elements));
        communicator.all_reduce(window, op).wait();
        CHECK(at::equal(window, expected(communicator.size(), elements, op)));
        const auto elsewhere = sample(communicator.rank(), elements);
        communicator.all_reduce(elsewhere, op).wait();
        CHECK(at::equal(elsewhere, window));
      }
    }
  }
}

TEST_CASE("between nodes large tensors of 16-bit floats and of whole numbers are reduced, also where sums are large") {
  for (const int ranks_a_node : {1, 2}) {
    scale::pretend_nodes_of(ranks_a_node);
    comm::NodeCommunicator communicator(mpi::Communicator::world());
    const int n = communicator.size();
    for (const auto type : {at::kHalf, at::kBFloat16, at::kInt, at::kLong, at::kDouble}) {
      INFO(ranks_a_node << " ranks a node, " << type);
      const auto window = communicator.allocate(many, type);
      const auto ranks_own = at::arange(many).remainder(5).add(communicator.rank()).to(type);
      window.copy_(ranks_own);
      communicator.all_reduce(window, ReduceOp::sum).wait();
      CHECK(at::equal(window, at::arange(many).remainder(5).mul(n).add(n * (n - 1) / 2).to(type)));
      if (!at::isFloatingType(type)) continue;
      const double large = type == at::kHalf ? 60000 : 1e30;  // two of them are infinity in fp16
      window.fill_(large);
      communicator.all_reduce(window, ReduceOp::mean).wait();
      CHECK(at::allclose(window.to(at::kDouble), at::full({many}, large, at::kDouble), 2e-2));
    }
  }
}
