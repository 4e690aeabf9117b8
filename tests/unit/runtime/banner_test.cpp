#include "runtime/banner.hpp"

#include "support/catch.hpp"

using namespace hortator;
using runtime::BannerFacts;

namespace {

BannerFacts two_nodes() {
  return {.libraries = {"hortator 0.1.0", "LibTorch 2.15.0", "Open MPI v4.1.4"},
          .launcher = "srun",
          .ranks = 4,
          .nodes = 2,
          .fewest_a_node = 2,
          .max_per_node = 2,
          .shown = {{"n1", {0, 1}}, {"n2", {2, 3}}},
          .device = "cpu",
          .cpus = "0-3",
          .threads = 4};
}

}  // namespace

TEST_CASE("the banner shows all facts and the caller's lines") {
  CHECK(runtime::banner(two_nodes(), {.libraries = {"HDF5 1.10.8"}, .lines = {{"batch size", "128 = 32 x 4 ranks"}}}) ==
        "hortator 0.1.0, LibTorch 2.15.0, Open MPI v4.1.4, HDF5 1.10.8\n"
        "  ranks       4 ranks on 2 nodes, 2 each (srun)\n"
        "  map         n1: 0-1; n2: 2-3\n"
        "  device      cpu, 4 threads a rank\n"
        "  CPUs        0-3 (rank 0)\n"
        "  batch size  128 = 32 x 4 ranks");
}

TEST_CASE("the banner of one rank is short") {
  const BannerFacts facts{
      .libraries = {"hortator"}, .launcher = "plain start", .shown = {{"n1", {0}}}, .device = "cpu", .cpus = "7"};
  CHECK(runtime::banner(facts) ==
        "hortator\n"
        "  ranks   1 rank on 1 node (plain start)\n"
        "  map     n1: 0\n"
        "  device  cpu, 1 thread a rank\n"
        "  CPUs    7");
}

TEST_CASE("the banner has a line for the device's position") {
  auto facts = two_nodes();
  facts.place = "NUMA node 1, bound to the CPUs beside it";
  CHECK_THAT(runtime::banner(facts),
             ContainsSubstring("\n  GPU at  NUMA node 1, bound to the CPUs beside it (rank 0)"));
}

TEST_CASE("the banner shows differences between ranks and nodes") {
  auto facts = two_nodes();
  facts.fewest_a_node = 1;
  facts.max_per_node = 3;
  facts.same_everywhere = false;
  CHECK_THAT(runtime::banner(facts), ContainsSubstring("4 ranks on 2 nodes, 1 to 3 each") &&
                                         ContainsSubstring("4 threads a rank on rank 0, others differ"));
}

TEST_CASE("the banner's map of nodes stays short at any scale") {
  auto facts = two_nodes();
  facts.nodes = 1024;
  facts.shown = {{"n1", {}}, {"n1024", {}}};
  for (int rank = 0; rank < 128; ++rank) facts.shown[0].ranks.push_back(rank * 1024);
  for (int rank = 0; rank < 128; ++rank) facts.shown[1].ranks.push_back(rank + 100000);
  CHECK_THAT(runtime::banner(facts),
             ContainsSubstring("map     n1: 0,1024,2048,3072,4096,5120,6144,... (128); ...; n1024: 100000-100127\n"));
}
