#include "comm/operands.hpp"

#include <hortator/error.hpp>

#include "backends.hpp"
#include "support/catch.hpp"

using namespace hortator;
using comm::ReduceOp;

TEST_CASE("unsuitable tensors are refused by name, before anything is sent") {
  for (const auto& name : test::backends()) {
    const auto communicator = test::make_backend(name);
    CHECK_THROWS_WITH(communicator->all_reduce(at::Tensor(), ReduceOp::sum), ContainsSubstring("undefined tensor"));
    CHECK_THROWS_WITH(communicator->all_reduce(at::ones({2}).to_sparse(), ReduceOp::sum), ContainsSubstring("layout"));
    CHECK_THROWS_WITH(communicator->all_reduce(at::ones({2}, at::kInt), ReduceOp::mean),
                      ContainsSubstring("mean of Int"));
    const auto watched = at::ones({2}).set_requires_grad(true);
    CHECK_THROWS_WITH(communicator->all_reduce(watched, ReduceOp::sum),
                      ContainsSubstring("all_reduce was to write to a tensor that requires a gradient: Float [2]"));
    CHECK_THROWS_WITH(communicator->broadcast(watched, 0), ContainsSubstring("requires a gradient"));
    {
      const at::NoGradGuard no_grad;
      communicator->broadcast(watched, 0).wait();
    }
    CHECK_THROWS_WITH(communicator->all_gather(at::ones({5 * communicator->size()}), at::ones({2})),
                      ContainsSubstring("all_gather got a whole of"));
    CHECK_THROWS_WITH(
        communicator->reduce_scatter(at::ones({2}), at::ones({2 * communicator->size()}, at::kDouble), ReduceOp::sum),
        ContainsSubstring("of the same type"));
  }
  const auto mpi = test::make_backend("mpi");
  CHECK_THROWS_WITH(mpi->all_reduce(at::empty({2}, at::kMeta), ReduceOp::sum), ContainsSubstring("a tensor on meta"));
  CHECK_THROWS_WITH(mpi->broadcast(at::empty({2}, at::kFloat8_e4m3fn), 0), ContainsSubstring("MPI has no such type"));
}

TEST_CASE("tensors are described by type and shape") {
  CHECK(comm::describe(at::ones({3, 4})) == "Float [3, 4]");
  CHECK(comm::describe(at::ones({}, at::kLong)) == "Long []");
  CHECK(comm::describe(at::Tensor()) == "undefined tensor");
}
