#include "comm/mpi/mpi_communicator.hpp"
#include "support/catch.hpp"

using namespace hortator;

TEST_CASE("data that is split into several MPI calls gives the same result, around every border") {
  for (std::int64_t elements = 0; elements <= 23; ++elements) {
    comm::MpiCommunicator whole(mpi::Communicator::world());
    comm::MpiCommunicator cut(mpi::Communicator::world(), 7);
    const int n = whole.size();
    const auto mine = at::arange(elements, at::kDouble).add(whole.rank());

    auto a = mine.clone();
    auto b = mine.clone();
    whole.all_reduce(a, comm::ReduceOp::sum).wait();
    cut.all_reduce(b, comm::ReduceOp::sum).wait();
    CHECK(at::equal(a, b));

    auto gathered_a = at::empty({elements * n}, at::kDouble);
    auto gathered_b = at::empty({elements * n}, at::kDouble);
    whole.all_gather(gathered_a, mine).wait();
    cut.all_gather(gathered_b, mine).wait();
    CHECK(at::equal(gathered_a, gathered_b));

    auto part_a = at::empty({elements}, at::kDouble);
    auto part_b = at::empty({elements}, at::kDouble);
    whole.reduce_scatter(part_a, gathered_a, comm::ReduceOp::mean).wait();
    cut.reduce_scatter(part_b, gathered_a, comm::ReduceOp::mean).wait();
    CHECK(at::equal(part_a, part_b));
  }
}
