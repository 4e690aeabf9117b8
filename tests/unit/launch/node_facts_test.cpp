#include "launch/job/node_facts.hpp"

#include "support/catch.hpp"

using namespace hortator::launching;

TEST_CASE("sinfo's nodes have CPUs and GPUs by type") {
  const auto nodes = parse_sinfo("64|gpu:a100:4(S:0-1,IDX:0-3),nvme:1\n128|(null)\n96+|gpu:8\n\nx|y\n");
  REQUIRE(nodes.size() == 3);
  CHECK(nodes[0].cpus == 64);
  REQUIRE(nodes[0].gpus.size() == 1);
  CHECK(nodes[0].gpus[0].types == "a100:4");
  CHECK(nodes[0].gpus[0].count == 4);
  CHECK(nodes[1].gpus.empty());
  CHECK(nodes[2].cpus == 96);
  CHECK(nodes[2].gpus[0].count == 8);
  CHECK(parse_sinfo("").empty());
}

TEST_CASE("pbsnodes's nodes have CPUs and GPUs") {
  const auto nodes = parse_pbsnodes(
      "n1\n     Mom = n1\n     resources_available.ncpus = 64\n     resources_available.ngpus = 4\n\n"
      "n2\n     resources_available.ncpus = 32\n     resources_available.ngpus = 0\n\nn3\n     state = down\n");
  REQUIRE(nodes.size() == 2);
  CHECK(nodes[0].cpus == 64);
  CHECK(nodes[0].gpus.at(0).count == 4);
  CHECK(nodes[1].gpus.empty());
}

TEST_CASE("the CPUs that a job may ask for are those of the smallest node that it may get") {
  const std::vector<NodeFacts> nodes = {{.cpus = 64, .gpus = {{.count = 4, .types = "a100:4"}}},
                                        {.cpus = 96, .gpus = {{.count = 8, .types = "h100:8"}}},
                                        {.cpus = 128}};
  CHECK(cpus_of_any(nodes, {}) == 64);
  CHECK(cpus_of_any(nodes, {.count = 4}) == 48);  // half of the 8 GPUs of a node with 96 CPUs
  CHECK(cpus_of_any(nodes, {.count = 8}) == 96);
  CHECK(cpus_of_any(nodes, {.count = 4, .types = "a100:4"}) == 64);
  CHECK(cpus_of_any(nodes, {.count = 1, .types = "h100:1"}) == 12);
  CHECK_FALSE(cpus_of_any(nodes, {.count = 16}).has_value());
  CHECK_FALSE(cpus_of_any({}, {}).has_value());
}
