#include "planning/candidate.hpp"

#include <algorithm>
#include <string>

#include "support/catch.hpp"

namespace hortator::planning {
namespace {

bool is_possible(const Candidate& one, const Choices& choices) {
  return one.ranks() == choices.ranks && one.tensor * one.context <= choices.ranks_per_node && one.zero >= 0 &&
         one.zero <= (one.pipeline > 1 ? 1 : 3) && (one.zero == 0 || one.data > 1) &&
         (one.pipeline > 1 || one.micro_batches == 1) && one.micro_batches % one.pipeline == 0 &&
         (!one.offload || one.zero > 0) && (!one.offload_parameters || (one.offload && one.zero == 3));
}

}  // namespace

TEST_CASE("every candidate has all ranks, and none comes twice") {
  for (int ranks = 1; ranks <= 64; ++ranks) {
    for (const int of_a_node : {1, 2, 4, 8}) {
      const Choices choices{.ranks = ranks, .ranks_per_node = of_a_node, .offload = true};
      const auto all = candidates(choices);
      REQUIRE(!all.empty());
      for (std::size_t i = 0; i < all.size(); ++i) {
        if (!is_possible(all[i], choices)) FAIL("impossible: " << launch_flags(all[i]) << " on " << ranks);
        if (std::find(all.begin() + static_cast<std::ptrdiff_t>(i) + 1, all.end(), all[i]) != all.end())
          FAIL("twice: " << launch_flags(all[i]) << " on " << ranks);
      }
    }
  }
}

TEST_CASE("all meshes within a node are candidates") {
  const auto all = candidates({.ranks = 8, .ranks_per_node = 8});
  for (const int tensor : {1, 2, 4, 8}) {
    for (const int context : {1, 2, 4, 8}) {
      for (const int pipeline : {1, 2, 4, 8}) {
        const bool divides = tensor * context * pipeline <= 8;
        const bool is_there = std::ranges::any_of(all, [&](const Candidate& one) {
          return one.tensor == tensor && one.context == context && one.pipeline == pipeline;
        });
        CHECK(is_there == divides);
      }
    }
  }
}

TEST_CASE("an axis that the program cannot use has one rank") {
  for (const auto& one : candidates(
           {.ranks = 16, .ranks_per_node = 8, .tensor = false, .pipeline = false, .zero = false, .recompute = false})) {
    CHECK(one.tensor == 1);
    CHECK(one.pipeline == 1);
    CHECK(one.zero == 0);
    CHECK(!one.recompute);
  }
}

TEST_CASE("a candidate on fewer ranks keeps all axes but data") {
  for (const auto& one : candidates({.ranks = 24, .ranks_per_node = 8, .offload = true})) {
    for (int ranks = 1; ranks <= 24; ++ranks) {
      const auto fewer = on_at_most(one, ranks);
      const int others = one.tensor * one.context * one.pipeline;
      REQUIRE(fewer.has_value() == (others <= ranks));
      if (!fewer) continue;
      CHECK(fewer->ranks() <= ranks);
      CHECK(one.data % fewer->data == 0);
      for (int data = fewer->data + 1; data <= one.data; ++data) CHECK((one.data % data != 0 || data * others > ranks));
      CHECK(fewer->zero == (fewer->data > 1 ? one.zero : 0));
      CHECK((fewer->zero > 0 || !fewer->offload));
      auto same = *fewer;
      same.data = one.data;
      same.zero = one.zero;
      same.offload = one.offload;
      same.offload_parameters = one.offload_parameters;
      CHECK(same == one);
    }
  }
}

TEST_CASE("a candidate is a launch line, and variables of the program") {
  CHECK(launch_flags({}).empty());
  CHECK(variables({}).empty());
  const Candidate one{.data = 2,
                      .tensor = 4,
                      .pipeline = 2,
                      .zero = 3,
                      .offload = true,
                      .offload_parameters = true,
                      .recompute = true,
                      .micro_batches = 8};
  CHECK(launch_flags(one) ==
        "--tensor 4 --pipeline 2 --pipeline-schedule 1f1b --micro-batches 8 --zero-stage 3 "
        "--offload-optimizer cpu --offload-parameters cpu --recompute-layers all");
  CHECK(variables(one) == std::vector<std::string>{"HORTATOR_TENSOR=4", "HORTATOR_PIPELINE=2",
                                                   "HORTATOR_PIPELINE_SCHEDULE=1f1b", "HORTATOR_MICRO_BATCHES=8",
                                                   "HORTATOR_ZERO_STAGE=3", "HORTATOR_OFFLOAD_OPTIMIZER=cpu",
                                                   "HORTATOR_OFFLOAD_PARAMETERS=cpu", "HORTATOR_RECOMPUTE_LAYERS=all"});
}

}  // namespace hortator::planning
