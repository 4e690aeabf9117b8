#include "parallel/mesh/mesh_plan.hpp"

#include <hortator/error.hpp>
#include <vector>

#include "core/text/text.hpp"
#include "support/catch.hpp"

using namespace hortator;
using parallel::Axis;
using parallel::MeshShape;

namespace {

std::string shape_of(const ParallelConfig& config, const ZeroConfig& zero, int ranks, int of_a_node = 0) {
  try {
    parallel::check(config, zero);
    return parallel::plan_mesh(config, zero, ranks, of_a_node == 0 ? ranks : of_a_node).text();
  } catch (const UsageError& error) {
    return error.what();
  }
}

}  // namespace

TEST_CASE("without ZeRO all ranks that tensor leaves are replicas") {
  CHECK(shape_of({}, {}, 1) == "1 rank");
  CHECK(shape_of({}, {}, 6) == "replicate 6");
  CHECK(shape_of({.tensor = 2}, {}, 6) == "replicate 3 x tensor 2");
  CHECK(shape_of({.replicate = 3, .tensor = 2}, {}, 6) == "replicate 3 x tensor 2");
  CHECK(shape_of({.tensor = 6}, {}, 6) == "tensor 6");
  CHECK(shape_of({.context = 2, .experts = 3}, {}, 6) == "replicate 3 x context 2, experts over 3");
  CHECK(shape_of({.experts = 2}, {.stage = 2}, 8) == "shard 8, experts over 2");
  CHECK(shape_of({.shard = 2, .experts = 4}, {.stage = 3}, 8) == "replicate 4 x shard 2, experts over 4");
}

TEST_CASE("1 sets nothing: the sizes that Accelerate writes for unused axes do not switch sharding off") {
  const ParallelConfig ones = {.replicate = 1, .shard = 1, .tensor = 1, .context = 1, .pipeline = 1};
  CHECK(shape_of(ones, {}, 4) == "replicate 4");
  CHECK(shape_of(ones, {.stage = 3}, 4) == "shard 4");
  CHECK(shape_of(ones, {.stage = 2, .shard_group = 2}, 4) == "replicate 2 x shard 2");
}

TEST_CASE("with ZeRO the ranks that the other axes leave share one set of shards") {
  CHECK(shape_of({}, {.stage = 1}, 8) == "shard 8");
  CHECK(shape_of({.replicate = 2}, {.stage = 3}, 8) == "replicate 2 x shard 4");
  CHECK(shape_of({.shard = 2}, {.stage = 3}, 8) == "replicate 4 x shard 2");
  CHECK(shape_of({.replicate = 2, .shard = 2, .tensor = 2}, {.stage = 3}, 8) == "replicate 2 x shard 2 x tensor 2");
  CHECK(shape_of({.tensor = 2}, {.stage = 2, .shard_group = 2}, 8) == "replicate 2 x shard 2 x tensor 2");
  CHECK(shape_of({.shard = 2}, {.stage = 2, .shard_group = 2}, 8) == "replicate 4 x shard 2");
}

TEST_CASE("shards within nodes are those of a node's ranks that get different batches") {
  const ZeroConfig of_node = {.stage = 3, .shard_group = ZeroConfig::node};
  CHECK(shape_of({}, of_node, 8, 4) == "replicate 2 x shard 4");
  CHECK(shape_of({.tensor = 2}, of_node, 8, 4) == "replicate 2 x shard 2 x tensor 2");
  CHECK(shape_of({.tensor = 4}, of_node, 8, 4) == "replicate 2 x tensor 4");
  CHECK_THAT(shape_of({.tensor = 4}, of_node, 12, 6), ContainsSubstring("a node has 6 ranks"));
  CHECK_THROWS_WITH(parallel::plan_mesh({}, of_node, 8, 0), ContainsSubstring("nodes have different numbers of ranks"));
}

TEST_CASE("what does not fit is refused with the axes and the reason") {
  CHECK_THAT(shape_of({.tensor = 4}, {}, 6), ContainsSubstring("tensor (4) must divide 6 ranks"));
  CHECK_THAT(shape_of({.replicate = 2, .tensor = 2}, {}, 8),
             ContainsSubstring("tensor (2) x replicate (2) must be 8 ranks"));
  CHECK_THAT(shape_of({.replicate = 3}, {.stage = 3}, 8), ContainsSubstring("replicate (3) must be 8 ranks"));
  CHECK_THAT(shape_of({.shard = 3}, {.stage = 3}, 8), ContainsSubstring("shard (3) must divide 8 ranks"));
  CHECK_THAT(shape_of({.shard = 4}, {.stage = 3, .shard_group = 2}, 8),
             ContainsSubstring("parallel.shard is 4, but zero.shard_group is 2"));
  CHECK_THAT(shape_of({.shard = 2}, {}, 8), ContainsSubstring("zero.stage is 0"));
  CHECK_THAT(shape_of({.tensor = 0}, {}, 8), ContainsSubstring("parallel.tensor is 0"));
  CHECK_THAT(shape_of({.replicate = -1}, {}, 8), ContainsSubstring("parallel.replicate is -1"));
  CHECK(shape_of({.pipeline = 2}, {}, 8) == "pipeline 2 x replicate 4");
  CHECK_THAT(shape_of({.pipeline = 2}, {.stage = 2}, 8),
             ContainsSubstring("parallel.pipeline is 2, and zero.stage is 2"));
  CHECK_THAT(shape_of({.experts = 0}, {}, 8), ContainsSubstring("parallel.experts is 0"));
  CHECK_THAT(shape_of({.experts = 3}, {}, 8), ContainsSubstring("parallel.experts is 3, and 8 ranks get different"));
  CHECK_THAT(shape_of({.context = 2, .experts = 2}, {}, 2), ContainsSubstring("and 1 rank gets different batches"));
  CHECK_THAT(shape_of({.shard = 3, .experts = 2}, {.stage = 2}, 6), ContainsSubstring("and 3 ranks share ZeRO's"));
  CHECK_THAT(shape_of({.tensor = 2, .experts = 2}, {}, 8), ContainsSubstring("parallel.tensor is 2"));
}

TEST_CASE("every plan covers all ranks, and ranks along tensor are neighbours") {
  for (int ranks = 1; ranks <= 24; ++ranks) {
    for (int tensor = 1; tensor <= ranks; ++tensor) {
      for (const int stage : {0, 3}) {
        if (ranks % tensor != 0) continue;
        const auto shape = parallel::plan_mesh({.tensor = tensor}, {.stage = stage}, ranks, ranks);
        CHECK(shape.data_size() * tensor == ranks);
        for (int rank = 0; rank < ranks; ++rank) {
          CHECK(shape.index(Axis::tensor, rank) == rank % tensor);
          CHECK(shape.data_index(rank) == rank / tensor);
        }
      }
    }
  }
}

TEST_CASE("tensor groups that are not within a node are worth a warning") {
  const auto warning = [](int tensor, int of_a_node) {
    return parallel::warning_of_nodes(parallel::plan_mesh({.tensor = tensor}, {}, 12, of_a_node), of_a_node);
  };
  CHECK(warning(1, 0).empty());
  CHECK(warning(2, 4).empty());
  CHECK(warning(4, 4).empty());
  CHECK_THAT(warning(4, 6), ContainsSubstring("4 ranks"));
  CHECK_THAT(warning(2, 1), ContainsSubstring("not always on one node"));
  CHECK_THAT(warning(2, 0), ContainsSubstring("not always on one node"));
}
