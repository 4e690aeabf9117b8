#include "mpi/all_to_all.hpp"

#include "support/catch.hpp"

using namespace hortator;

TEST_CASE("each rank gets the parts that all ranks have for it, in one call or in several") {
  const auto comm = mpi::Communicator::world();
  const auto part = [](int from, int to) {
    return std::string(static_cast<std::size_t>(7 * from + (to == 0 ? 0 : to)), static_cast<char>('a' + from));
  };
  std::vector<std::string> parts;
  std::vector<std::string> expected;
  for (int rank = 0; rank < comm.size(); ++rank) {
    parts.push_back(part(comm.rank(), rank));
    expected.push_back(part(rank, comm.rank()));
  }
  CHECK(mpi::all_to_all(comm, parts) == expected);
  CHECK(mpi::all_to_all(comm, parts, 8) == expected);
  CHECK(mpi::all_to_all(comm, parts, 0) == expected);  // one byte from each rank to each in a call
}
