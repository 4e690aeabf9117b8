#include "mpi/collectives.hpp"

#include "support/catch.hpp"

using namespace hortator;

TEST_CASE("numbers are reduced in their own type") {
  const auto comm = mpi::Communicator::world();
  const int n = comm.size();
  CHECK(mpi::all_reduce(comm, comm.rank() + 1, mpi::Op::sum) == n * (n + 1) / 2);
  CHECK(mpi::all_reduce(comm, 0.5 * comm.rank(), mpi::Op::max) == 0.5 * (n - 1));
  CHECK(mpi::all_reduce(comm, std::uint64_t{1} << 63, mpi::Op::min) == std::uint64_t{1} << 63);
  CHECK(mpi::all_reduce(comm, comm.rank() == n - 1, mpi::Op::logical_or));
  CHECK(mpi::sum_before(comm, 2) == 2 * comm.rank());
  std::vector<std::int64_t> several = {comm.rank(), -comm.rank(), 7};
  mpi::all_reduce(comm, std::span(several), mpi::Op::max);
  CHECK(several == std::vector<std::int64_t>{n - 1, 0, 7});
}

TEST_CASE("plain structs and texts are broadcast from any root") {
  const auto comm = mpi::Communicator::world();
  struct Pair {
    int a;
    double b;
  };
  for (int root = 0; root < comm.size(); ++root) {
    const bool mine = comm.rank() == root;
    const auto pair = mpi::broadcast(comm, mine ? Pair{root, 0.5} : Pair{-1, -1}, root);
    CHECK(pair.a == root);
    CHECK(pair.b == 0.5);
    CHECK(mpi::broadcast(comm, mine ? std::string_view("the root's") : std::string_view("x"), root) == "the root's");
    CHECK(mpi::broadcast(comm, std::string_view(mine ? "" : "other"), root).empty());
  }
}

TEST_CASE("texts of different lengths are gathered in rank order") {
  const auto comm = mpi::Communicator::world();
  const std::string mine(static_cast<std::size_t>(comm.rank() * 3), static_cast<char>('a' + comm.rank()));
  const auto all = mpi::all_gather(comm, std::string_view(mine));
  REQUIRE(all.size() == static_cast<std::size_t>(comm.size()));
  for (int r = 0; r < comm.size(); ++r) {
    CHECK(all[static_cast<std::size_t>(r)] == std::string(static_cast<std::size_t>(r * 3), static_cast<char>('a' + r)));
  }
  const int root = comm.size() - 1;
  const auto at_root = mpi::gather(comm, std::string_view(mine), root);
  CHECK(at_root.size() == (comm.rank() == root ? static_cast<std::size_t>(comm.size()) : 0U));
  if (comm.rank() == root) CHECK(at_root == all);
  CHECK(mpi::all_gather<int>(comm, comm.rank()).back() == root);
  // More than goes in one call.
  CHECK(mpi::all_gather(comm, std::string_view(mine), 2) == all);
  CHECK(mpi::all_gather(comm, std::string_view(mine), 0) == all);
  const auto in_turn = mpi::gather(comm, std::string_view(mine), root, 0);
  if (comm.rank() == root) CHECK(in_turn == all);
  if (comm.rank() != root) CHECK(in_turn.empty());
}

TEST_CASE("the first ranks make a communicator without the others") {
  const auto comm = mpi::Communicator::world();
  for (int count = 1; count <= comm.size(); ++count) {
    if (comm.rank() >= count) continue;
    const auto part = comm.first(count);
    CHECK(part.size() == count);
    CHECK(part.rank() == comm.rank());
    CHECK(mpi::all_reduce(part, 1, mpi::Op::sum) == count);
  }
  mpi::barrier(comm);
}

TEST_CASE("every rank gets its own numbers from the root that has them all") {
  const auto comm = mpi::Communicator::world();
  const int root = comm.size() - 1;
  // Rank r gets r numbers: the first rank none.
  std::vector<std::vector<std::uint64_t>> parts;
  for (int r = 0; r < comm.size() && comm.rank() == root; ++r) {
    parts.emplace_back(static_cast<std::size_t>(r), (std::uint64_t{1} << 40) + static_cast<std::uint64_t>(r));
  }
  const auto own = static_cast<std::size_t>(comm.rank());
  CHECK(mpi::scatter(comm, parts, own, root) ==
        std::vector<std::uint64_t>(own, (std::uint64_t{1} << 40) + static_cast<std::uint64_t>(comm.rank())));
}
