#pragma once

#include <optional>
#include <string>
#include <vector>

#include "comm/shm/board.hpp"

namespace hortator::comm {

/// What is wrong with a collective to which the ranks of a node have come.
struct NodeProblem {
  int rank = 0;  ///< the culprit
  std::string what;
};

/// "all_reduce (sum) of 3 x Float"
std::string describe(const NodePost& post);

/// `posts` of all ranks, `ranks` their numbers in the job. Nothing when all ranks do the same.
std::optional<NodeProblem> find_problem(const std::vector<const NodePost*>& posts, const std::vector<int>& ranks);

}  // namespace hortator::comm
