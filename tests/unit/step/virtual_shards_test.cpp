#include "step/reproducible/virtual_shards.hpp"

#include <bit>
#include <hortator/error.hpp>

#include "support/catch.hpp"

using namespace hortator;
using step::VirtualShards;

TEST_CASE("shards are spread over ranks only where sums over them are nodes of one tree") {
  for (int shards = 1; shards <= 24; ++shards) {
    for (int ranks = 1; ranks <= 24; ++ranks) {
      const bool possible =
          shards % ranks == 0 && (ranks == 1 || std::has_single_bit(static_cast<unsigned>(shards / ranks)));
      if (possible) {
        CHECK(VirtualShards::shards_a_rank(shards, ranks) == shards / ranks);
      } else {
        CHECK_THROWS_AS(VirtualShards::shards_a_rank(shards, ranks), UsageError);
      }
    }
  }
  CHECK_THROWS_AS(VirtualShards::shards_a_rank(0, 1), UsageError);
}
