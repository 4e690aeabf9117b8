#include "comm/nccl/ids.hpp"

#include <cstring>

#include "backends.hpp"
#include "mpi/collectives.hpp"

using namespace hortator;

namespace {

// The rule as NCCL's guide states it, rank by rank.
bool makes_an_id(int rank, int ranks, int ids) {
  const int longer = ranks % ids;
  const int length = ranks / ids;
  const int border = longer * (length + 1);
  return rank < border ? rank % (length + 1) == 0 : (rank - border) % length == 0;
}

}  // namespace

TEST_CASE("one id for each 128 ranks, made where NCCL expects it") {
  CHECK(comm::id_makers(1, 128) == std::vector<int>{0});
  CHECK(comm::id_makers(128, 128) == std::vector<int>{0});
  CHECK(comm::id_makers(129, 128) == std::vector<int>{0, 65});
  CHECK(comm::id_makers(1024, 128).size() == 8);
  for (int ranks = 1; ranks <= 700; ++ranks) {
    for (const int ranks_an_id : {1, 2, 3, 64, 128}) {
      const auto makers = comm::id_makers(ranks, ranks_an_id);
      std::vector<int> expected;
      for (int rank = 0; rank < ranks; ++rank) {
        if (makes_an_id(rank, ranks, static_cast<int>(makers.size()))) expected.push_back(rank);
      }
      CHECK(makers == expected);
    }
  }
}

TEST_CASE("all ranks get the same ids, each from its maker") {
  const test::CleanMock mock;
  const auto world = mpi::Communicator::world();
  for (const int ranks_an_id : {1, 2, 128}) {
    const auto ids = comm::share_ids(world, ranks_an_id);
    const auto makers = comm::id_makers(world.size(), ranks_an_id);
    REQUIRE(ids.size() == makers.size());
    for (std::size_t i = 0; i < ids.size(); ++i) {
      int maker = 0;
      std::memcpy(&maker, &ids[i], sizeof maker);
      CHECK(maker == makers[i]);
      const auto first = mpi::broadcast(world, ids[i], 0);
      CHECK(std::memcmp(&first, &ids[i], sizeof first) == 0);
    }
  }
}
