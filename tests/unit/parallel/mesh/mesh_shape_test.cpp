#include "parallel/mesh/mesh_shape.hpp"

#include <hortator/error.hpp>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "support/catch.hpp"

using namespace hortator;
using parallel::Axis;
using parallel::MeshShape;

namespace {

std::string refusal(const MeshShape::Request& request, int ranks) {
  try {
    MeshShape(request, ranks);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "accepted";
}

/// Every shape of up to four ranks along each axis.
template <typename Check>
void for_each_shape(const Check& check) {
  for (int pipeline = 1; pipeline <= 3; ++pipeline) {
    for (int replicate = 1; replicate <= 4; ++replicate) {
      for (int shard = 1; shard <= 4; ++shard) {
        for (int context = 1; context <= 2; ++context) {
          for (int tensor = 1; tensor <= 4; ++tensor) {
            check(MeshShape({pipeline, replicate, shard, context, tensor},
                            pipeline * replicate * shard * context * tensor));
          }
        }
      }
    }
  }
}

}  // namespace

TEST_CASE("the indices along all axes identify a rank") {
  for_each_shape([](const MeshShape& shape) {
    std::set<std::vector<int>> positions;
    for (int rank = 0; rank < shape.ranks(); ++rank) {
      std::vector<int> position;
      for (const auto axis : parallel::all_axes) {
        position.push_back(shape.index(axis, rank));
        CHECK(position.back() < shape.size(axis));
      }
      positions.insert(position);
    }
    CHECK(static_cast<int>(positions.size()) == shape.ranks());
  });
}

TEST_CASE("ranks are in one group exactly when they differ only along its axis") {
  for_each_shape([](const MeshShape& shape) {
    for (const auto axis : parallel::all_axes) {
      std::map<int, std::vector<int>> groups;
      for (int rank = 0; rank < shape.ranks(); ++rank) groups[shape.group(axis, rank)].push_back(rank);
      CHECK(static_cast<int>(groups.size()) == shape.ranks() / shape.size(axis));
      for (const auto& [number, ranks] : groups) {
        for (std::size_t i = 0; i < ranks.size(); ++i) {
          CHECK(shape.index(axis, ranks[i]) == static_cast<int>(i));
          CHECK(shape.ranks_along(axis, ranks[i]) == ranks);
          for (const auto other : parallel::all_axes) {
            if (other != axis) CHECK(shape.index(other, ranks[i]) == shape.index(other, ranks[0]));
          }
        }
      }
    }
  });
}

TEST_CASE("ranks of a tensor, context or pipeline group get the same batches, all others different ones") {
  for_each_shape([](const MeshShape& shape) {
    std::map<int, int> ranks_of;
    for (int rank = 0; rank < shape.ranks(); ++rank) {
      ++ranks_of[shape.data_index(rank)];
      for (const auto axis : {Axis::tensor, Axis::context, Axis::pipeline}) {
        for (const int peer : shape.ranks_along(axis, rank)) CHECK(shape.data_index(peer) == shape.data_index(rank));
      }
    }
    CHECK(static_cast<int>(ranks_of.size()) == shape.data_size());
    for (const auto& [index, count] : ranks_of) CHECK(count == shape.ranks() / shape.data_size());
  });
}

TEST_CASE("tensor ranks are neighbours, and shards lie within replicas") {
  const MeshShape shape({.replicate = 2, .shard = 2, .tensor = 4}, 16);
  CHECK(shape.ranks_along(Axis::tensor, 5) == std::vector{4, 5, 6, 7});
  CHECK(shape.ranks_along(Axis::shard, 5) == std::vector{1, 5});
  CHECK(shape.ranks_along(Axis::replicate, 5) == std::vector{5, 13});
}

TEST_CASE("replicas fill the ranks that the other axes leave") {
  CHECK(MeshShape({}, 6).size(Axis::replicate) == 6);
  CHECK(MeshShape({.shard = 3}, 6).size(Axis::replicate) == 2);
  CHECK(MeshShape({.shard = 6}, 6).size(Axis::replicate) == 1);
}

TEST_CASE("a mesh that does not fit the number of ranks is refused by the names of its axes") {
  CHECK(refusal({.shard = 3, .tensor = 4}, 16).find("tensor (4) x shard (3) must divide 16 ranks") !=
        std::string::npos);
  CHECK(refusal({.replicate = 2, .shard = 3}, 16).find("shard (3) x replicate (2) must be 16 ranks") !=
        std::string::npos);
  CHECK(refusal({.shard = 4}, 2).find("shard (4) must divide 2 ranks") != std::string::npos);
  CHECK(refusal({.tensor = 0}, 2).find("parallel.tensor is 0") != std::string::npos);
  CHECK(refusal({.pipeline = 65536, .tensor = 65536}, 1).find("must divide 1 rank") != std::string::npos);
}

TEST_CASE("a mesh is described by its axes of more than one rank") {
  CHECK(MeshShape({}, 1).text() == "1 rank");
  CHECK(MeshShape({.shard = 4}, 8).text() == "replicate 2 x shard 4");
}

TEST_CASE("each group of ranks with different batches holds every expert once, and equal holders average") {
  for (const int replicate : {1, 2, 3, 4, 6, 8}) {
    for (const int context : {1, 2}) {
      for (int experts = 1; experts <= replicate; ++experts) {
        const MeshShape::Request request{.replicate = replicate, .context = context, .experts = experts};
        const int ranks = replicate * context;
        if (replicate % experts != 0) {
          CHECK_THAT(refusal(request, ranks), ContainsSubstring("use a divisor of their number"));
          continue;
        }
        const MeshShape shape(request, ranks);
        std::map<int, std::vector<int>> groups, holders;
        for (int rank = 0; rank < ranks; ++rank) {
          groups[shape.expert_group(rank)].push_back(rank);
          holders[shape.holders_group(rank)].push_back(rank);
        }
        CHECK(static_cast<int>(groups.size()) * experts == ranks);
        for (const auto& [number, members] : groups) {
          REQUIRE(static_cast<int>(members.size()) == experts);
          for (int i = 0; i < experts; ++i) {
            CHECK(shape.expert_index(members[i]) == i);
            CHECK(shape.index(Axis::context, members[i]) == shape.index(Axis::context, members[0]));
            CHECK(shape.data_index(members[i]) == shape.data_index(members[0]) + i);
          }
        }
        CHECK(static_cast<int>(holders.size()) == experts);
        for (const auto& [number, members] : holders) {
          CHECK(static_cast<int>(members.size()) == shape.holders_size());
          for (const int rank : members) CHECK(shape.expert_index(rank) == shape.expert_index(members[0]));
        }
      }
    }
  }
}

TEST_CASE("ranks that share shards of experts are along shard, hold the same experts, and have as many replicas each") {
  for (const int replicate : {1, 2, 3, 4}) {
    for (const int shard : {1, 2, 3, 4, 6}) {
      for (const int context : {1, 2}) {
        const int data = replicate * shard, ranks = data * context;
        for (int experts = 1; experts <= data; ++experts) {
          if (data % experts != 0) continue;
          const MeshShape::Request request{
              .replicate = replicate, .shard = shard, .context = context, .experts = experts};
          if (shard % experts != 0 && experts % shard != 0) {
            CHECK_THAT(refusal(request, ranks), ContainsSubstring("a divisor or a multiple of the ranks along shard"));
            continue;
          }
          const MeshShape shape(request, ranks);
          std::map<int, std::vector<int>> groups;
          for (int rank = 0; rank < ranks; ++rank) groups[shape.expert_shards_group(rank)].push_back(rank);
          CHECK(static_cast<int>(groups.size()) * shape.expert_shards_size() == ranks);
          for (const auto& [number, members] : groups) {
            CHECK(members.front() == number);
            CHECK(static_cast<int>(members.size()) == shape.expert_shards_size());
            for (const int rank : members) {
              CHECK(shape.group(Axis::shard, rank) == shape.group(Axis::shard, number));
              CHECK(shape.holders_group(rank) == shape.holders_group(number));
            }
          }
          CHECK(shape.holders_size() % shape.expert_shards_size() == 0);
        }
      }
    }
  }
}
