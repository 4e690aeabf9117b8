#include "mpi/environment.hpp"
#include "runtime/banner.hpp"
#include "support/catch.hpp"

using namespace hortator;

TEST_CASE("the facts of this job are gathered on the main rank") {
  const runtime::World world({.cpu = true});
  const auto facts = runtime::banner_facts(world);
  const int n = world.topology().size;
  CHECK(facts.ranks == n);
  CHECK(facts.nodes == 1);
  CHECK(facts.fewest_a_node == n);
  CHECK(facts.max_per_node == n);
  CHECK(facts.device == "cpu");
  CHECK(facts.threads == world.threads().threads);
  CHECK(facts.same_everywhere);
  CHECK(facts.libraries.size() == 3);
  if (world.topology().rank != 0) return;
  REQUIRE(facts.shown.size() == 1);
  CHECK(facts.shown[0].host == mpi::host_name());
  CHECK(static_cast<int>(facts.shown[0].ranks.size()) == n);
  CHECK(facts.shown[0].ranks.back() == n - 1);
}
