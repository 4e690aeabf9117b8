#pragma once

#include <ATen/core/Tensor.h>

#include <hortator/error.hpp>
#include <optional>
#include <string>
#include <vector>

#include "comm/shm/board.hpp"

namespace hortator::comm {

/// Why a collective that all ranks of a node have entered cannot be done.
struct NodeProblem {
  int rank = 0;  ///< the culprit
  Problem problem;
};

NodeShape shape_of(const at::Tensor& tensor);

/// "all_reduce (sum) of Float [3, 4]"
std::string describe(const NodePost& post);

/// Compares the `posts` of all ranks; `ranks` are their numbers in the job. Empty when all ranks make the same call and
/// none has refused.
std::optional<NodeProblem> find_problem(const std::vector<const NodePost*>& posts, const std::vector<int>& ranks);

}  // namespace hortator::comm
