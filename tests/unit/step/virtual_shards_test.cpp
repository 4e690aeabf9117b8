#include "step/reproducible/virtual_shards.hpp"

#include <bit>
#include <hortator/error.hpp>

#include "support/catch.hpp"

using namespace hortator;
using step::VirtualShards;

TEST_CASE("shards are distributed only if each rank's sum is a node of the tree") {
  for (int shards = 1; shards <= 24; ++shards) {
    for (int ranks = 1; ranks <= 24; ++ranks) {
      const bool possible =
          shards % ranks == 0 && (ranks == 1 || std::has_single_bit(static_cast<unsigned>(shards / ranks)));
      if (possible) {
        CHECK(VirtualShards::shards_per_rank(shards, ranks) == shards / ranks);
      } else {
        CHECK_THROWS_AS(VirtualShards::shards_per_rank(shards, ranks), UsageError);
      }
    }
  }
  CHECK_THROWS_AS(VirtualShards::shards_per_rank(0, 1), UsageError);
}
