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
          .elements = elements};
}

std::string verdict(const NodePost& a, const NodePost& b) {
  const auto problem = find_problem({&a, &b}, {4, 5});
  return problem ? problem->what : "";
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
      "The ranks are in different collectives: rank 5: all_reduce (sum) of 4 x Float; rank 4: all_reduce (sum) of 3 x "
      "Float");
  auto other = mine;
  other.op = ReduceOp::max;
  CHECK(verdict(mine, other).find("rank 5: all_reduce (max)") != std::string::npos);
  other = mine;
  other.type = static_cast<std::int32_t>(at::kHalf);
  CHECK(verdict(mine, other).find("rank 5: all_reduce (sum) of 3 x Half") != std::string::npos);
  other = {.verb = NodePost::Verb::broadcast, .root = 1};
  auto third = other;
  third.root = 2;
  CHECK(verdict(other, third).find("from rank 2") != std::string::npos);
  CHECK(verdict(mine, {.verb = NodePost::Verb::barrier}).find("rank 5: barrier") != std::string::npos);
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
  CHECK(problem->what == message);
}
