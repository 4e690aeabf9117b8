// What only the nccl back end promises of its verbs.
#include <thread>

#include "backends.hpp"
#include "comm/nccl/datatype.hpp"
#include "mpi/collectives.hpp"

using namespace hortator;
using comm::ReduceOp;

TEST_CASE("the contract suite has neither misused NCCL nor leaked its resources") {
  CHECK(test::mock_nccl().violations.empty());
  CHECK(test::mock_nccl().memory_blocks == 0);
  CHECK(test::mock_nccl().registrations == 0);
  CHECK(test::mock_nccl().aborted == 0);
  CHECK(test::mock_nccl().destroyed > 0);
}

TEST_CASE("types that NCCL does not have are moved as bytes or refused by name") {
  const test::CleanMock mock;
  const auto communicator = test::make_nccl();
  const int n = communicator->size();
  auto complex = at::complex(at::ones({3}), at::full({3}, 2.0));
  communicator->all_reduce(complex, ReduceOp::sum).wait();
  CHECK(at::equal(complex, at::complex(at::full({3}, 1.0 * n), at::full({3}, 2.0 * n))));
  CHECK_THROWS_WITH(communicator->all_reduce(complex, ReduceOp::product),
                    ContainsSubstring("the product of tensors of type Complex"));

  const auto small = at::full({2}, communicator->rank() + 1.0).to(at::kFloat8_e4m3fn);
  auto all = at::empty({2 * n}, at::kFloat8_e4m3fn);
  communicator->all_gather(all, small).wait();
  CHECK(all.to(at::kFloat)[2 * n - 1].item<float>() == static_cast<float>(n));
  CHECK_THROWS_WITH(communicator->all_reduce(small, ReduceOp::sum), ContainsSubstring("Float8_e4m3fn"));

  // Sums wrap as 16 bits do, though NCCL adds 32.
  auto large = at::full({1}, 32767, at::kShort);
  const auto wrapped = at::full({1}, 32767 * n, at::kInt).to(at::kShort);
  communicator->all_reduce(large, ReduceOp::sum).wait();
  CHECK(at::equal(large, wrapped));
}

TEST_CASE("a mean uses ncclAvg, and bool is reduced by maximum and minimum") {
  CHECK(comm::nccl_reduction(at::kFloat, ReduceOp::mean).op == ncclAvg);
  CHECK(comm::nccl_reduction(at::kBool, ReduceOp::sum).op == ncclMax);
  CHECK(comm::nccl_reduction(at::kBool, ReduceOp::product).op == ncclMin);
  CHECK(comm::nccl_reduction(at::kBFloat16, ReduceOp::sum).type == ncclBfloat16);
}

TEST_CASE("unsuitable tensors are refused by name, before anything is sent") {
  const test::CleanMock mock;
  const auto communicator = test::make_nccl();
  CHECK_THROWS_WITH(communicator->all_reduce(at::empty({2}, at::kMeta), ReduceOp::sum),
                    ContainsSubstring("a tensor on meta"));
  CHECK_THROWS_WITH(communicator->all_reduce(at::Tensor(), ReduceOp::sum), ContainsSubstring("undefined tensor"));
  CHECK_THROWS_WITH(communicator->all_reduce(at::ones({2}, at::kInt), ReduceOp::mean),
                    ContainsSubstring("mean of Int"));
  CHECK_THROWS_WITH(communicator->all_gather(at::ones({5 * communicator->size()}), at::ones({2})),
                    ContainsSubstring("all_gather got a whole of"));
  CHECK_THROWS_WITH(communicator->broadcast_all({at::ones({2}), at::ones({2}).set_requires_grad(true)}, 0),
                    ContainsSubstring("broadcast was to write to a tensor that requires a gradient"));
  CHECK_THROWS_WITH(communicator->broadcast(at::ones({2}), -1), ContainsSubstring("Broadcast from rank -1"));
}

TEST_CASE("many tensors are broadcast in one group") {
  const test::CleanMock mock;
  const auto communicator = test::make_nccl();
  communicator->broadcast_all(std::vector<at::Tensor>(20, at::ones({1})), 0).wait();
  CHECK(test::mock_nccl().groups == 1);
}

TEST_CASE("ranks leave a barrier when the last has arrived") {
  const test::CleanMock mock;
  const auto world = mpi::Communicator::world();
  const auto communicator = test::make_nccl();
  if (world.rank() == world.size() - 1) std::this_thread::sleep_for(std::chrono::milliseconds(100));
  const auto begin = std::chrono::steady_clock::now();
  communicator->barrier();
  const auto waited = std::chrono::steady_clock::now() - begin;
  if (world.rank() != world.size() - 1) CHECK(waited > std::chrono::milliseconds(50));
}
