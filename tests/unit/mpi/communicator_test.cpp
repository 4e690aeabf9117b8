#include "mpi/communicator.hpp"

#include "mpi/collectives.hpp"
#include "mpi/environment.hpp"
#include "support/catch.hpp"

using namespace hortator;

TEST_CASE("split groups ranks by color and orders them by key") {
  const auto world = mpi::Communicator::world();
  const auto part = world.split(world.rank() % 2, -world.rank());
  CHECK(part.size() == (world.size() + (world.rank() % 2 == 0 ? 1 : 0)) / 2);
  CHECK(mpi::broadcast(part, world.rank(), part.size() - 1) == world.rank() % 2);
  CHECK(world.node().size() == world.size());
}

TEST_CASE("a moved communicator is empty and frees nothing") {
  auto first = mpi::Communicator::world();
  const auto handle = first.number();
  mpi::Communicator second = std::move(first);
  CHECK(second.number() == handle);
  first = mpi::Communicator::world();
  second = std::move(first);
  CHECK(mpi::all_reduce(second, 1, mpi::Op::sum) == second.size());
}

TEST_CASE("an MPI error is thrown as an exception with MPI's message") {
  const auto world = mpi::Communicator::world();
  CHECK_THROWS_WITH(mpi::broadcast(world, 1, world.size() + 5), ContainsSubstring("MPI_Bcast failed"));
}

TEST_CASE("MPI that the application has started is used and not finalised") {
  CHECK_NOTHROW(mpi::ensure_initialized());
  mpi::finalize_if_ours();
  CHECK(mpi::is_usable());
  CHECK_THAT(mpi::library_version(), ContainsSubstring("MPI"));
}
