#include "comm/shm/node_problem.hpp"

#include <c10/core/ScalarType.h>

#include <algorithm>

#include "support/catch.hpp"

using namespace hortator;
using comm::find_problem;
using comm::NodePost;
using comm::ReduceOp;

namespace {

NodePost sum_of(std::int64_t elements) {
  return {.verb = NodePost::Verb::all_reduce,
          .op = ReduceOp::sum,
          .type = static_cast<std::int32_t>(at::kFloat),
          .shape = comm::shape_of(at::empty({elements}))};
}

std::string verdict(const NodePost& a, const NodePost& b) {
  const auto problem = find_problem({&a, &b}, {4, 5});
  return problem ? problem->problem.what : "";
}

}  // namespace

TEST_CASE("equal calls are no problem, wherever the tensors are") {
  auto elsewhere = sum_of(3);
  elsewhere.memory = 7;
  elsewhere.offset = 64;
  CHECK(verdict(sum_of(3), elsewhere).empty());
  CHECK(verdict({.verb = NodePost::Verb::barrier}, {.verb = NodePost::Verb::barrier}).empty());
}

TEST_CASE("every difference between calls is a problem that names both sides") {
  const auto mine = sum_of(3);
  CHECK(
      verdict(mine, sum_of(4)) ==
      "The ranks pass tensors of different shapes: rank 5: all_reduce (sum) of Float [4]; rank 4: all_reduce (sum) of "
      "Float [3]");
  auto other = mine;
  other.op = ReduceOp::max;
  CHECK(verdict(mine, other).find("rank 5: all_reduce (max)") != std::string::npos);
  other = mine;
  other.type = static_cast<std::int32_t>(at::kHalf);
  CHECK(verdict(mine, other).find("The ranks are in different collectives: rank 5: all_reduce (sum) of Half [3]") !=
        std::string::npos);
  other = {.verb = NodePost::Verb::broadcast, .root = 1};
  auto third = other;
  third.root = 2;
  CHECK(verdict(other, third).find("from rank 2") != std::string::npos);
  CHECK(verdict(mine, {.verb = NodePost::Verb::barrier}).find("rank 5: barrier") != std::string::npos);
}

TEST_CASE("tensors of one number of elements differ by their shapes, however many dimensions they have") {
  const auto gather_of = [](const std::vector<std::int64_t>& sizes) {
    return NodePost{.verb = NodePost::Verb::all_gather,
                    .type = static_cast<std::int32_t>(at::kFloat),
                    .shape = comm::shape_of(at::empty(sizes))};
  };
  const auto problem = [&](const NodePost& a, const NodePost& b) { return find_problem({&a, &b}, {0, 1}); };
  const auto found = problem(gather_of({2, 6}), gather_of({3, 4}));
  REQUIRE(found);
  CHECK(found->problem.what ==
        "The ranks pass tensors of different shapes: rank 1: all_gather of Float [3, 4]; rank 0: all_gather of Float "
        "[2, 6]");
  CHECK_THAT(found->problem.hint, ContainsSubstring("pad_across_processes") && ContainsSubstring("gather_to_main"));
  CHECK(problem(gather_of({}), gather_of({1})));
  CHECK(problem(gather_of({0, 2}), gather_of({0, 3})));
  CHECK(problem(gather_of({1, 1, 1, 1, 1, 1, 1, 1, 6}), gather_of({1, 1, 1, 1, 1, 1, 1, 6})));
  CHECK(problem(gather_of({1, 1, 1, 1, 1, 1, 2, 1, 3}), gather_of({1, 1, 1, 1, 1, 1, 1, 2, 3})));
  CHECK_FALSE(problem(gather_of({1, 2, 1, 2, 1, 2, 1, 2, 3}), gather_of({1, 2, 1, 2, 1, 2, 1, 2, 3})));
}

TEST_CASE("the rank that differs from the majority is the culprit, also when it is the first") {
  const auto mine = sum_of(3);
  const auto odd = sum_of(4);
  const auto problem = find_problem({&odd, &mine, &mine}, {0, 1, 2});
  REQUIRE(problem);
  CHECK(problem->rank == 0);
}

TEST_CASE("a rank that refuses is the culprit, with its own reason") {
  const auto mine = sum_of(3);
  NodePost refused{.verb = NodePost::Verb::refused};
  const std::string message = "an undefined tensor";
  std::copy(message.begin(), message.end(), refused.text.begin());
  const auto problem = find_problem({&mine, &mine, &refused}, {0, 1, 2});
  REQUIRE(problem);
  CHECK(problem->rank == 2);
  CHECK(problem->problem.what == message);
}
